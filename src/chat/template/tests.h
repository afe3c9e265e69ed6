// The tests of `x is name`.
#pragma once

#include "chat/template/params.h"
#include "chat/template/value.h"

namespace tq::jinja {

struct TestSpec {
  std::string_view name;
  Result<bool> (*run)(Runtime& rt, const Value& value, const Params& params);
  std::string_view params;
  int required = 0;
};

// Null when `soft` and there is none. Errors: kUnsupported naming it.
Result<const TestSpec*> FindTest(std::string_view name, int line, bool soft);
Result<bool> RunTest(Runtime& rt, const TestSpec& test, const Value& value, const Args& args);

}  // namespace tq::jinja
