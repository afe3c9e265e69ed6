#include "chat/template/tests.h"

#include "chat/template/ast.h"
#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/methods.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"

namespace tq::jinja {
namespace {

using Outcome = Result<bool>;

Result<bool> RestIs(Runtime& rt, const Value& value, int64_t divisor, int64_t wanted) {
  TQ_ASSIGN_OR_RETURN(const Value rest,
                      Arithmetic(rt, ExprKind::kModulo, value, Value::Int(divisor)));
  return Equal(rt, rest, Value::Int(wanted));
}

Outcome Odd(Runtime& rt, const Value& v, const Params&) { return RestIs(rt, v, 2, 1); }
Outcome Even(Runtime& rt, const Value& v, const Params&) { return RestIs(rt, v, 2, 0); }
Outcome DivisibleBy(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const Value rest, Arithmetic(rt, ExprKind::kModulo, v, p[0]));
  return Equal(rt, rest, Value::Int(0));
}
Outcome Defined(Runtime&, const Value& v, const Params&) { return !v.IsUndefined(); }
Outcome IsUndefinedTest(Runtime&, const Value& v, const Params&) { return v.IsUndefined(); }
Outcome IsNone(Runtime&, const Value& v, const Params&) { return v.Is(Kind::kNone); }
Outcome Boolean(Runtime&, const Value& v, const Params&) { return v.Is(Kind::kBool); }
Outcome IsTrue(Runtime&, const Value& v, const Params&) {
  return v.Is(Kind::kBool) && v.integer() != 0;
}
Outcome IsFalse(Runtime&, const Value& v, const Params&) {
  return v.Is(Kind::kBool) && v.integer() == 0;
}
Outcome Integer(Runtime&, const Value& v, const Params&) {
  return v.Is(Kind::kInt) || v.Is(Kind::kBigInt);
}
Outcome IsFloat(Runtime&, const Value& v, const Params&) { return v.Is(Kind::kFloat); }
Outcome Number(Runtime&, const Value& v, const Params&) { return v.IsNumber(); }
Outcome IsStringTest(Runtime&, const Value& v, const Params&) { return v.IsString(); }
Outcome Mapping(Runtime&, const Value& v, const Params&) { return v.Is(Kind::kDict); }
Outcome Iterable(Runtime&, const Value& v, const Params&) { return IsIterable(v); }
Outcome Escaped(Runtime&, const Value& v, const Params&) {
  return v.IsString() && v.As<StringObject>().markup;
}

// Has a length and items by index or key; so has the undefined value of Jinja.
Outcome Sequence(Runtime&, const Value& v, const Params&) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kRange:
      return true;
    default:
      return false;
  }
}

Outcome Callable(Runtime&, const Value& v, const Params&) {
  return v.Is(Kind::kCallable) || v.IsUndefined() || v.Is(Kind::kLoop) || v.Is(Kind::kJoiner);
}

Outcome SameAs(Runtime& rt, const Value& v, const Params& p) {
  if (v.kind() != p[0].kind()) return false;
  if (v.object() != nullptr && !v.IsString()) return v.object() == p[0].object();
  return Equal(rt, v, p[0]);
}

Outcome In(Runtime& rt, const Value& v, const Params& p) { return Contains(rt, p[0], v); }

template <CompareOp op>
Outcome Compares(Runtime& rt, const Value& v, const Params& p) {
  return Compare(rt, op, v, p[0]);
}

Outcome CaseIs(Runtime& rt, const Value& v, std::string_view method) {
  TQ_ASSIGN_OR_RETURN(const std::string text, Str(rt, v));
  const Value string = rt.String(text);
  for (const MethodSpec& spec : StringTests()) {
    if (spec.name != method) continue;
    TQ_ASSIGN_OR_RETURN(const Value result, spec.run(rt, string, Params()));
    return Truthy(result);
  }
  return false;
}
Outcome Lower(Runtime& rt, const Value& v, const Params&) { return CaseIs(rt, v, "islower"); }
Outcome Upper(Runtime& rt, const Value& v, const Params&) { return CaseIs(rt, v, "isupper"); }

Outcome IsFilterName(Runtime&, const Value& v, const Params&) {
  if (!v.IsString()) return false;
  const Result<const FilterSpec*> found = FindFilter(v.text(), 0, /*soft=*/true);
  return found.ok() && found.value() != nullptr;
}
Outcome IsTestName(Runtime&, const Value& v, const Params&) {
  if (!v.IsString()) return false;
  const Result<const TestSpec*> found = FindTest(v.text(), 0, /*soft=*/true);
  return found.ok() && found.value() != nullptr;
}

constexpr TestSpec kTests[] = {
    {"odd", Odd, ""},
    {"even", Even, ""},
    {"divisibleby", DivisibleBy, "num", 1},
    {"defined", Defined, ""},
    {"undefined", IsUndefinedTest, ""},
    {"filter", IsFilterName, ""},
    {"test", IsTestName, ""},
    {"none", IsNone, ""},
    {"boolean", Boolean, ""},
    {"false", IsFalse, ""},
    {"true", IsTrue, ""},
    {"integer", Integer, ""},
    {"float", IsFloat, ""},
    {"lower", Lower, ""},
    {"upper", Upper, ""},
    {"string", IsStringTest, ""},
    {"mapping", Mapping, ""},
    {"number", Number, ""},
    {"sequence", Sequence, ""},
    {"iterable", Iterable, ""},
    {"callable", Callable, ""},
    {"sameas", SameAs, "other", 1},
    {"escaped", Escaped, ""},
    {"in", In, "seq", 1},
    {"==", Compares<CompareOp::kEq>, "other", 1},
    {"eq", Compares<CompareOp::kEq>, "other", 1},
    {"equalto", Compares<CompareOp::kEq>, "other", 1},
    {"!=", Compares<CompareOp::kNe>, "other", 1},
    {"ne", Compares<CompareOp::kNe>, "other", 1},
    {">", Compares<CompareOp::kGt>, "other", 1},
    {"gt", Compares<CompareOp::kGt>, "other", 1},
    {"greaterthan", Compares<CompareOp::kGt>, "other", 1},
    {"ge", Compares<CompareOp::kGe>, "other", 1},
    {">=", Compares<CompareOp::kGe>, "other", 1},
    {"<", Compares<CompareOp::kLt>, "other", 1},
    {"lt", Compares<CompareOp::kLt>, "other", 1},
    {"lessthan", Compares<CompareOp::kLt>, "other", 1},
    {"<=", Compares<CompareOp::kLe>, "other", 1},
    {"le", Compares<CompareOp::kLe>, "other", 1},
};

}  // namespace

Result<const TestSpec*> FindTest(std::string_view name, int line, bool soft) {
  for (const TestSpec& spec : kTests) {
    if (spec.name == name) return &spec;
  }
  if (soft) return static_cast<const TestSpec*>(nullptr);
  return Unsupported(fmt::format("chat template line {}: there is no test named '{}'", line, name));
}

Result<bool> RunTest(Runtime& rt, const TestSpec& test, const Value& value, const Args& args) {
  TQ_RETURN_IF_ERROR(rt.Step());
  TQ_ASSIGN_OR_RETURN(const Params params,
                      Params::Bind(rt, test.name, test.params, test.required, args));
  return test.run(rt, value, params);
}

}  // namespace tq::jinja
