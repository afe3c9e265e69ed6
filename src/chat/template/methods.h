// Methods of Python's built-in types, as far as templates can use them.
#pragma once

#include <span>

#include "chat/template/params.h"
#include "chat/template/value.h"

namespace tq::jinja {

struct MethodSpec {
  std::string_view name;
  Result<Value> (*run)(Runtime& rt, const Value& self, const Params& params);
  std::string_view params;
  int required = 0;
};

// A bound method; kMissing when the type has none of that name; an undefined whose use fails when
// the method would change a list or dict. Errors: a method that exists but is not supported.
Result<Value> FindMethod(Runtime& rt, const Value& object, std::string_view name);

std::span<const MethodSpec> StringMethods();
std::span<const MethodSpec> StringTests();  // isdigit() ...
std::span<const MethodSpec> ContainerMethods(Kind kind);

}  // namespace tq::jinja
