#include "weights/gguf_keys.h"

#include <charconv>
#include <cmath>

#include "weights/quote.h"

namespace tq {
namespace {

// A 32-bit float as the double with the same shortest decimal form: 1e-06 instead of
// 9.99999997e-07, which is what a config.json would say. Both round to the same float.
double ShortestDouble(float value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  double out = value;
  std::from_chars(buffer, end.ptr, out);
  return out;
}

}  // namespace

GgufKeys::GgufKeys(const GgufFile& file, std::string where)
    : file_(file), where_(std::move(where)) {
  architecture_ = RequiredString("general.architecture");
}

const GgufValue* GgufKeys::Find(std::string_view key) const {
  const auto it = file_.keys.find(key);
  if (it == file_.keys.end()) return nullptr;
  read_.insert(it->first);
  return &it->second;
}

void GgufKeys::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void GgufKeys::Bad(std::string_view key, const std::string& what) {
  Fail(Corrupt(where_ + ": key " + Quoted(key) + ": " + what));
}

void GgufKeys::Refuse(std::string_view key, const std::string& what) {
  Fail(Unsupported(where_ + ": key " + Quoted(key) + ": " + what));
}

void GgufKeys::Missing(std::string_view key) {
  Fail(NotFound(where_ + ": key " + Quoted(key) + " is missing"));
}

const GgufValue* GgufKeys::Array(std::string_view key) {
  const GgufValue* value = Find(key);
  if (value == nullptr) {
    Missing(key);
  } else if (!value->is_array) {
    Bad(key, "expected an array, found " + value->TypeName());
    return nullptr;
  }
  return value;
}

int64_t GgufKeys::Int(std::string_view key, int64_t default_value, int64_t min_value,
                      int64_t max_value) {
  const GgufValue* value = Find(key);
  if (value == nullptr) return default_value;
  if (!value->IsInteger()) {
    Bad(key, "expected an integer, found " + value->TypeName());
    return default_value;
  }
  if (value->count == 0) {
    Bad(key, "the array is empty");
    return default_value;
  }
  const std::optional<int64_t> first = value->IntAt(0);
  for (uint64_t i = 1; i < value->count; ++i) {
    if (value->IntAt(i) != first) {
      Refuse(key, "values that differ between layers are not supported for " + architecture_);
      return default_value;
    }
  }
  if (!first || *first < min_value || *first > max_value) {
    Bad(key, "expected " + std::to_string(min_value) + " .. " + std::to_string(max_value) +
                 ", found " + (first ? std::to_string(*first) : "more than 63 bits"));
    return default_value;
  }
  return *first;
}

int64_t GgufKeys::RequiredInt(std::string_view key, int64_t min_value, int64_t max_value) {
  if (!Has(key)) Missing(key);
  return Int(key, min_value, min_value, max_value);
}

double GgufKeys::Float(std::string_view key, double default_value) {
  const GgufValue* value = Find(key);
  if (value == nullptr) return default_value;
  const std::optional<double> number = value->is_array ? std::nullopt : value->FloatAt(0);
  if (!number || !std::isfinite(*number)) {
    Bad(key, "expected a finite float, found " + value->TypeName());
    return default_value;
  }
  if (value->type == GgufType::kF32) return ShortestDouble(static_cast<float>(*number));
  return *number;
}

double GgufKeys::RequiredFloat(std::string_view key) {
  if (!Has(key)) Missing(key);
  return Float(key, 0);
}

bool GgufKeys::Bool(std::string_view key, bool default_value) {
  const GgufValue* value = Find(key);
  if (value == nullptr) return default_value;
  const std::optional<bool> flag = value->is_array ? std::nullopt : value->BoolAt(0);
  if (!flag) Bad(key, "expected a bool, found " + value->TypeName());
  return flag.value_or(default_value);
}

std::string GgufKeys::String(std::string_view key, std::string default_value) {
  const GgufValue* value = Find(key);
  if (value == nullptr) return default_value;
  if (value->is_array || value->type != GgufType::kString) {
    Bad(key, "expected a string, found " + value->TypeName());
    return default_value;
  }
  if (!IsUtf8(value->strings[0])) {
    Bad(key, "the text is not UTF-8");
    return default_value;
  }
  return std::string(value->strings[0]);
}

std::string GgufKeys::RequiredString(std::string_view key) {
  if (!Has(key)) Missing(key);
  return String(key, "");
}

void GgufKeys::Ignore(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) Find(key);
}

std::vector<std::string> GgufKeys::WithPrefix(std::string_view prefix) const {
  std::vector<std::string> out;
  for (auto it = file_.keys.lower_bound(prefix);
       it != file_.keys.end() && it->first.starts_with(prefix); ++it) {
    out.push_back(it->first);
  }
  return out;
}

std::vector<std::string> GgufKeys::UnreadArchKeys() const {
  std::vector<std::string> out = WithPrefix(architecture_ + '.');
  std::erase_if(out, [this](const std::string& key) { return read_.contains(key); });
  return out;
}

}  // namespace tq
