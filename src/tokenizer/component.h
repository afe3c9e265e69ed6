// Shared by the factories of pipeline components ({"type": "Digits", ...} objects).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/status.h"

namespace tq::tok {

// Largest id that a file may use.
inline constexpr int64_t kMaxTokenId = int64_t{1} << 24;
// Longest token that a model may look for from every position of a text: bounds the cost of a byte.
inline constexpr size_t kMaxTokenBytes = 1024;
// A chain of components that could make a text longer than this many times is refused: a small file
// must not make a small prompt eat the memory.
inline constexpr double kMaxGrowth = 256.0;

// A text of the file for a message: in quotes, one line, not too long.
std::string Quoted(std::string_view text);

// One row of a factory table.
template <typename Product>
struct Factory {
  std::string_view type;
  Result<Product> (*make)(const Json& json, const std::string& where);
};

// Errors: kCorrupt (not an object, no type), kUnsupported naming the type.
template <typename Product>
Result<Product> MakeComponent(std::span<const Factory<Product>> table, const Json& json,
                              const std::string& where) {
  ConfigReader reader(json, where);
  const std::string type = reader.String("type", "");
  TQ_RETURN_IF_ERROR(reader.status());
  if (type.empty()) return Corrupt(where + ": type is missing");
  for (const Factory<Product>& factory : table) {
    if (factory.type == type) return factory.make(json, where + " (" + type + ")");
  }
  return Unsupported(where + ": type " + Quoted(type) + " is not known");
}

// The members of a Sequence component.
template <typename Product>
Result<std::vector<Product>> MakeSequence(Result<Product> (*make)(const Json&, const std::string&),
                                          const Json& json, std::string_view key,
                                          const std::string& where) {
  const auto list = json.find(key);
  if (list == json.end() || !list->is_array()) {
    return Corrupt(where + ": " + std::string(key) + ": expected a list");
  }
  std::vector<Product> out;
  for (size_t i = 0; i < list->size(); ++i) {
    TQ_ASSIGN_OR_RETURN(Product product, make((*list)[i], where + "[" + std::to_string(i) + "]"));
    out.push_back(std::move(product));
  }
  return out;
}

// A field that holds one character.
Result<std::string> OneCharField(ConfigReader* reader, std::string_view key,
                                 std::string_view default_value);

}  // namespace tq::tok
