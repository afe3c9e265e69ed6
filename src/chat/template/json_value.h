// JSON -> Value, key order kept.
#pragma once

#include "base/json.h"
#include "chat/template/value.h"

namespace tq::jinja {

// `name` is the variable, for messages. Errors: text that is not UTF-8, nesting, what is not JSON.
Result<Value> ValueFromJson(Runtime& rt, const OrderedJson& json, std::string_view name);

}  // namespace tq::jinja
