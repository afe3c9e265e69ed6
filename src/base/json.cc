#include "base/json.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tq {
namespace {

// Line and column (1-based) of a byte offset.
std::string Place(std::string_view text, size_t offset) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// SAX filter in front of the DOM builder: it bounds the depth and refuses duplicate keys.
template <typename JsonType>
class StrictHandler : public nlohmann::detail::json_sax_dom_parser<JsonType> {
  using Base = nlohmann::detail::json_sax_dom_parser<JsonType>;

 public:
  StrictHandler(JsonType& target, std::string_view text, int max_depth)
      : Base(target, /*allow_exceptions=*/false), text_(text), max_depth_(max_depth) {}

  bool start_object(std::size_t size) {
    keys_.emplace_back();
    return Enter() && Base::start_object(size);
  }
  bool end_object() {
    keys_.pop_back();
    --depth_;
    return Base::end_object();
  }
  bool start_array(std::size_t size) { return Enter() && Base::start_array(size); }
  bool end_array() {
    --depth_;
    return Base::end_array();
  }
  bool key(std::string& name) {
    if (!keys_.back().insert(name).second) return Fail("key \"" + name + "\" appears twice");
    return Base::key(name);
  }
  bool number_float(double value, const std::string& raw) {
    if (!std::isfinite(value)) return Fail("number " + raw + " is out of range");
    return Base::number_float(value, raw);
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& /*error*/) {
    if (error_.empty()) {
      error_ = "malformed JSON at " + Place(text_, position == 0 ? 0 : position - 1) + " near \"" +
               token.substr(token.size() > 24 ? token.size() - 24 : 0) + "\"";
    }
    return false;
  }
  const std::string& error() const { return error_; }

 private:
  bool Enter() {
    if (++depth_ > max_depth_) {
      return Fail("nested deeper than " + std::to_string(max_depth_) + " levels");
    }
    return true;
  }
  bool Fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }

  std::string_view text_;
  int max_depth_;
  int depth_ = 0;
  std::string error_;
  std::vector<std::set<std::string>> keys_;
};

template <typename JsonType>
Result<JsonType> Parse(std::string_view text, std::string_view where, int max_depth) {
  JsonType root;
  StrictHandler<JsonType> handler(root, text, max_depth);
  bool ok = false;
  try {
    ok = JsonType::sax_parse(text.begin(), text.end(), &handler);
  } catch (const std::exception& error) {
    return Corrupt(std::string(where) + ": " + error.what());
  }
  if (!ok) {
    return Corrupt(std::string(where) + ": " +
                   (handler.error().empty() ? "malformed JSON" : handler.error()));
  }
  return root;
}

const char* KindName(const Json& value) { return value.type_name(); }

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view where, int max_depth) {
  return Parse<Json>(text, where, max_depth);
}

Result<OrderedJson> ParseOrderedJson(std::string_view text, std::string_view where, int max_depth) {
  return Parse<OrderedJson>(text, where, max_depth);
}

ConfigReader::ConfigReader(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    Fail(Corrupt(where_ + ": expected a JSON object, found " + KindName(object_)));
  }
}

const Json* ConfigReader::Find(std::string_view key) const {
  if (!object_.is_object()) return nullptr;
  const auto it = object_.find(key);
  if (it == object_.end()) return nullptr;
  read_.insert(std::string(key));
  return it->is_null() ? nullptr : &*it;
}

void ConfigReader::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool ConfigReader::Has(std::string_view key) const { return Find(key) != nullptr; }

int64_t ConfigReader::Int(std::string_view key, int64_t default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  // Writers of some configs spell integers as 64.0.
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (std::floor(number) == number && std::fabs(number) < 9.0e15) {
      return static_cast<int64_t>(number);
    }
  }
  if (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX}) {
    Fail(Corrupt(where_ + ": " + std::string(key) + " is out of range"));
    return default_value;
  }
  if (!value->is_number_integer()) {
    Fail(Corrupt(where_ + ": " + std::string(key) + ": expected an integer, found " +
                 value->dump()));
    return default_value;
  }
  return value->get<int64_t>();
}

int64_t ConfigReader::RequiredInt(std::string_view key, int64_t min_value, int64_t max_value) {
  if (!Has(key)) {
    Fail(Corrupt(where_ + ": " + std::string(key) + " is missing"));
    return min_value;
  }
  const int64_t value = Int(key, min_value);
  if (value < min_value || value > max_value) {
    Fail(Corrupt(where_ + ": " + std::string(key) + ": expected " + std::to_string(min_value) +
                 ".." + std::to_string(max_value) + ", found " + std::to_string(value)));
    return min_value;
  }
  return value;
}

double ConfigReader::Number(std::string_view key, double default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  if (!value->is_number()) {
    Fail(Corrupt(where_ + ": " + std::string(key) + ": expected a number, found " + value->dump()));
    return default_value;
  }
  return value->get<double>();
}

bool ConfigReader::Bool(std::string_view key, bool default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  if (!value->is_boolean()) {
    Fail(Corrupt(where_ + ": " + std::string(key) + ": expected true or false, found " +
                 value->dump()));
    return default_value;
  }
  return value->get<bool>();
}

std::string ConfigReader::String(std::string_view key, std::string default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  if (!value->is_string()) {
    Fail(Corrupt(where_ + ": " + std::string(key) + ": expected a string, found " + value->dump()));
    return default_value;
  }
  return value->get<std::string>();
}

template <typename T>
std::vector<T> ConfigReader::List(std::string_view key, bool (*is_item)(const Json&),
                                  const char* items) {
  const Json* value = Find(key);
  std::vector<T> out;
  if (value == nullptr) return out;
  const std::string where = where_ + ": " + std::string(key);
  if (!value->is_array()) {
    Fail(Corrupt(where + ": expected a list, found " + KindName(*value)));
    return out;
  }
  for (const Json& item : *value) {
    if (!is_item(item)) {
      Fail(Corrupt(where + ": expected " + items + ", found " + item.dump()));
      return {};
    }
    out.push_back(item.get<T>());
  }
  return out;
}

std::vector<std::string> ConfigReader::StringList(std::string_view key) {
  return List<std::string>(
      key, [](const Json& item) { return item.is_string(); }, "strings");
}

std::vector<int64_t> ConfigReader::IntList(std::string_view key) {
  return List<int64_t>(
      key, [](const Json& item) { return item.is_number_integer(); }, "integers");
}

int64_t ConfigReader::IntOf(std::initializer_list<std::string_view> keys, int64_t default_value) {
  std::string_view first;
  for (const std::string_view key : keys) {
    if (Has(key) && first.empty()) first = key;
  }
  return first.empty() ? default_value : Int(first, default_value);
}

const Json* ConfigReader::Raw(std::string_view key) { return Find(key); }

void ConfigReader::Ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) read_.insert(std::string(key));
}

std::vector<std::string> ConfigReader::UnreadKeys() const {
  std::vector<std::string> out;
  if (!object_.is_object()) return out;
  for (const auto& [key, value] : object_.items()) {
    if (!read_.contains(key)) out.push_back(key);
  }
  return out;
}

}  // namespace tq
