#include "chat/template/json_value.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

// Below kMaxValueDepth: templates wrap what they are given.
constexpr int kMaxJsonDepth = 400;

class Converter {
 public:
  Converter(Runtime& rt, std::string_view name) : rt_(rt), name_(name) {}

  Result<Value> Convert(const OrderedJson& json, int depth) {
    TQ_RETURN_IF_ERROR(rt_.Step());
    if (depth > kMaxJsonDepth) {
      return Fail(fmt::format("is nested deeper than {} levels", kMaxJsonDepth));
    }
    switch (json.type()) {
      case OrderedJson::value_t::null:
        return Value::None();
      case OrderedJson::value_t::boolean:
        return Value::Bool(*json.get_ptr<const bool*>());
      case OrderedJson::value_t::number_integer:
        return Value::Int(*json.get_ptr<const int64_t*>());
      case OrderedJson::value_t::number_unsigned: {
        const uint64_t number = *json.get_ptr<const uint64_t*>();
        return number <= uint64_t{INT64_MAX} ? Value::Int(static_cast<int64_t>(number))
                                             : Value::BigInt(number);
      }
      case OrderedJson::value_t::number_float:
        return Value::Float(*json.get_ptr<const double*>());
      case OrderedJson::value_t::string: {
        const std::string& text = *json.get_ptr<const std::string*>();
        if (!IsValidUtf8(text)) return Fail("holds text that is not valid UTF-8");
        return rt_.String(text);
      }
      case OrderedJson::value_t::array: {
        std::vector<Value> items;
        items.reserve(json.size());
        for (const OrderedJson& item : json) {
          TQ_ASSIGN_OR_RETURN(Value value, Convert(item, depth + 1));
          items.push_back(std::move(value));
        }
        return rt_.List(std::move(items));
      }
      case OrderedJson::value_t::object: {
        DictBuilder dict(rt_);
        for (auto it = json.begin(); it != json.end(); ++it) {
          if (!IsValidUtf8(it.key())) return Fail("holds a key that is not valid UTF-8");
          TQ_ASSIGN_OR_RETURN(Value value, Convert(*it, depth + 1));
          dict.Set(it.key(), std::move(value));
        }
        return dict.Take();
      }
      default:
        return Fail("holds binary data");
    }
  }

 private:
  Status Fail(std::string_view what) const {
    return InvalidArgument(fmt::format("chat template: the variable '{}' {}", name_, what));
  }

  Runtime& rt_;
  std::string_view name_;
};

}  // namespace

Result<Value> ValueFromJson(Runtime& rt, const OrderedJson& json, std::string_view name) {
  return Converter(rt, name).Convert(json, 0);
}

}  // namespace tq::jinja
