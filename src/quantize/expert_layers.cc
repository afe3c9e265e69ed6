#include "quantize/expert_layers.h"

#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

// More than any model has; bounds what "0-999999999" makes us write.
constexpr int kMaxLayer = 9999;

struct Tier {
  std::string_view name;
  int entries;
};
constexpr Tier kTiers[] = {{"ternary", 3}, {"2", 4}, {"3", 8}, {"4", 16}};

bool ParseLayer(std::string_view text, int& layer) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, layer);
  return error == std::errc() && stop == end && layer >= 0 && layer <= kMaxLayer;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string Shown(std::string_view text) { return "\"" + std::string(text.substr(0, 40)) + "\""; }

Result<int> TierEntries(const Json& value, const std::string& where) {
  const std::string name = value.is_string()           ? value.get<std::string>()
                           : value.is_number_integer() ? std::to_string(value.get<int64_t>())
                                                       : std::string(value.type_name());
  for (const Tier& tier : kTiers) {
    if (tier.name == name) return tier.entries;
  }
  return InvalidArgument(where + ": expected ternary, 2, 3 or 4, found " + Shown(name));
}

}  // namespace

Result<std::vector<int>> ParseLayerList(std::string_view text) {
  std::set<int> layers;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view piece = Trimmed(rest.substr(0, comma));
    const size_t dash = piece.find('-');
    int first = 0;
    int last = 0;
    const bool good =
        dash == std::string_view::npos
            ? ParseLayer(piece, first) && ParseLayer(piece, last)
            : ParseLayer(piece.substr(0, dash), first) && ParseLayer(piece.substr(dash + 1), last);
    if (!good || last < first) {
      return InvalidArgument("expected layers like 0-5,42-47 of at most " +
                             std::to_string(kMaxLayer) + ", found " + Shown(piece));
    }
    for (int layer = first; layer <= last; ++layer) layers.insert(layer);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return std::vector<int>(layers.begin(), layers.end());
}

Result<std::map<int, int>> ParseExpertLayerTiers(std::string_view text, std::string_view where) {
  TQ_ASSIGN_OR_RETURN(const Json document, ParseJson(text, where, 8));
  const Json* tiers = &document;
  if (document.is_object() && document.contains("tiers")) tiers = &document["tiers"];
  if (!tiers->is_object() || tiers->empty()) {
    return InvalidArgument(std::string(where) +
                           ": expected an object of layers and tiers like {\"0\": \"ternary\", "
                           "\"1\": \"3\"}, found " +
                           (tiers->is_object() ? "none" : tiers->type_name()));
  }
  std::map<int, int> out;
  for (const auto& [key, value] : tiers->items()) {
    int layer = 0;
    if (!ParseLayer(key, layer)) {
      return InvalidArgument(std::string(where) + ": expected a layer of 0 to " +
                             std::to_string(kMaxLayer) + ", found " + Shown(key));
    }
    const std::string at = std::string(where) + ": layer " + std::to_string(layer);
    TQ_ASSIGN_OR_RETURN(const int entries, TierEntries(value, at));
    if (!out.emplace(layer, entries).second) return InvalidArgument(at + " is there twice");
  }
  return out;
}

std::string TierName(int codebook_entries) {
  for (const Tier& tier : kTiers) {
    if (tier.entries == codebook_entries) return std::string(tier.name);
  }
  return std::to_string(codebook_entries) + " entries";
}

}  // namespace tq
