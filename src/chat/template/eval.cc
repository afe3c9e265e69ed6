// Expressions.
#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/interpreter.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/tests.h"

namespace tq::jinja {

Result<Value> Interpreter::Eval(const Expr& expr, Frame& frame) {
  if (++nesting_ > limits().max_depth * kNestingPerCall) {
    return FailLimit("statements and expressions are nested too deeply");
  }
  TQ_RETURN_IF_ERROR(Step());
  set_line(expr.line);
  Result<Value> value = EvalInner(expr, frame);
  --nesting_;
  return value;
}

Result<Value> Interpreter::EvalInner(const Expr& expr, Frame& frame) {
  switch (expr.kind) {
    case ExprKind::kConst:
      return expr.value;
    case ExprKind::kName: {
      const Value& value = At(expr.slot, frame);
      return value.IsMissing() ? UndefinedName(expr.name) : value;
    }
    case ExprKind::kTuple:
    case ExprKind::kList:
      return EvalItems(expr, frame);
    case ExprKind::kDict:
      return EvalDict(expr, frame);
    case ExprKind::kConcat:
      return EvalConcat(expr, frame);
    case ExprKind::kCompare:
      return EvalCompare(expr, frame);
    case ExprKind::kCond:
      return EvalCond(expr, frame);
    case ExprKind::kSlice:
      return EvalSlice(expr, frame);
    case ExprKind::kCall:
      return EvalCall(expr, frame);
    case ExprKind::kFilter:
      return EvalFilter(expr, frame);
    case ExprKind::kTest:
      return EvalTest(expr, frame);
    case ExprKind::kAttribute:
      return Internal("an assignment target was evaluated");
    case ExprKind::kGetItem:
    case ExprKind::kAdd:
    case ExprKind::kSubtract:
    case ExprKind::kMultiply:
    case ExprKind::kDivide:
    case ExprKind::kFloorDivide:
    case ExprKind::kModulo:
    case ExprKind::kPower:
      return EvalBinary(expr, frame);
    default:
      break;
  }
  TQ_ASSIGN_OR_RETURN(Value first, Eval(*expr.items[0], frame));
  set_line(expr.line);
  switch (expr.kind) {
    case ExprKind::kNot:
      return Value::Bool(!Truthy(first));
    case ExprKind::kNegate:
      return Negate(*this, first);
    case ExprKind::kPlus:
      return Plus(*this, first);
    case ExprKind::kGetAttr:
      return GetAttr(*this, first, expr.value);
    case ExprKind::kAnd:
      return Truthy(first) ? Eval(*expr.items[1], frame) : first;
    default:
      return Truthy(first) ? first : Eval(*expr.items[1], frame);
  }
}

Result<Value> Interpreter::EvalItems(const Expr& expr, Frame& frame) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const ExprPtr& item : expr.items) {
    TQ_ASSIGN_OR_RETURN(Value value, Eval(*item, frame));
    items.push_back(std::move(value));
  }
  return expr.kind == ExprKind::kList ? List(std::move(items)) : Tuple(std::move(items));
}

Result<Value> Interpreter::EvalDict(const Expr& expr, Frame& frame) {
  DictBuilder dict(*this);
  for (size_t i = 0; i < expr.items.size(); i += 2) {
    TQ_ASSIGN_OR_RETURN(const Value key, Eval(*expr.items[i], frame));
    TQ_ASSIGN_OR_RETURN(Value value, Eval(*expr.items[i + 1], frame));
    TQ_RETURN_IF_ERROR(dict.Set(key, std::move(value)));
  }
  return dict.Take();
}

Result<Value> Interpreter::EvalBinary(const Expr& expr, Frame& frame) {
  TQ_ASSIGN_OR_RETURN(const Value left, Eval(*expr.items[0], frame));
  TQ_ASSIGN_OR_RETURN(const Value right, Eval(*expr.items[1], frame));
  set_line(expr.line);
  if (expr.kind == ExprKind::kGetItem) return GetItem(*this, left, right);
  return Arithmetic(*this, expr.kind, left, right);
}

Result<Value> Interpreter::EvalConcat(const Expr& expr, Frame& frame) {
  std::string text;
  for (const ExprPtr& item : expr.items) {
    TQ_ASSIGN_OR_RETURN(const Value value, Eval(*item, frame));
    if (value.IsString()) {
      text += value.text();
    } else {
      TQ_ASSIGN_OR_RETURN(const std::string part, Str(*this, value));
      text += part;
    }
    TQ_RETURN_IF_ERROR(CheckBytes(text.size()));
  }
  TQ_RETURN_IF_ERROR(StepBytes(text.size()));
  return String(std::move(text));
}

Result<Value> Interpreter::EvalCompare(const Expr& expr, Frame& frame) {
  TQ_ASSIGN_OR_RETURN(Value left, Eval(*expr.items[0], frame));
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    TQ_ASSIGN_OR_RETURN(Value right, Eval(*expr.items[i + 1], frame));
    set_line(expr.line);
    TQ_ASSIGN_OR_RETURN(const bool holds, Compare(*this, expr.ops[i], left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Interpreter::EvalCond(const Expr& expr, Frame& frame) {
  TQ_ASSIGN_OR_RETURN(const Value test, Eval(*expr.items[0], frame));
  if (Truthy(test)) return Eval(*expr.items[1], frame);
  if (expr.items[2] != nullptr) return Eval(*expr.items[2], frame);
  return Undefined("the inline if-expression evaluated to false and has no else");
}

Result<Value> Interpreter::EvalSlice(const Expr& expr, Frame& frame) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (expr.items[i] == nullptr) continue;
    TQ_ASSIGN_OR_RETURN(parts[i], Eval(*expr.items[i], frame));
  }
  set_line(expr.line);
  return Slice(*this, parts[0], parts[1], parts[2], parts[3]);
}

Result<Args> Interpreter::EvalArgs(const CallArgs& call, Frame& frame) {
  Args args;
  for (const ExprPtr& expr : call.positional) {
    TQ_ASSIGN_OR_RETURN(Value value, Eval(*expr, frame));
    args.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : call.named) {
    TQ_ASSIGN_OR_RETURN(Value value, Eval(*expr, frame));
    args.named.emplace_back(name, std::move(value));
  }
  if (call.more_positional != nullptr) {
    TQ_ASSIGN_OR_RETURN(const Value more, Eval(*call.more_positional, frame));
    TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(*this, more));
    args.positional.insert(args.positional.end(), items.begin(), items.end());
  }
  if (call.more_named != nullptr) {
    TQ_ASSIGN_OR_RETURN(const Value more, Eval(*call.more_named, frame));
    if (!more.Is(Kind::kDict)) return Fail("argument after ** must be a mapping");
    for (const auto& [key, value] : more.dict().entries) {
      if (!key.IsString()) return Fail("keywords must be strings");
      for (const auto& [name, unused] : args.named) {
        if (name == key.text()) return Fail("got multiple values for keyword argument '{}'", name);
      }
      args.named.emplace_back(key.text(), value);
      TQ_RETURN_IF_ERROR(Step(static_cast<int64_t>(args.named.size())));
    }
  }
  return args;
}

Result<Value> Interpreter::EvalCall(const Expr& expr, Frame& frame) {
  TQ_ASSIGN_OR_RETURN(const Value callee, Eval(*expr.items[0], frame));
  TQ_ASSIGN_OR_RETURN(const Args args, EvalArgs(*expr.args, frame));
  set_line(expr.line);
  Result<Value> value = Call(callee, args);
  set_line(expr.line);
  return value;
}

Result<Value> Interpreter::EvalFilter(const Expr& expr, Frame& frame) {
  Value input;
  if (expr.items[0] == nullptr) {
    input = std::exchange(filter_input_, Value());
  } else {
    TQ_ASSIGN_OR_RETURN(input, Eval(*expr.items[0], frame));
  }
  TQ_ASSIGN_OR_RETURN(const Args args, EvalArgs(*expr.args, frame));
  set_line(expr.line);
  if (expr.filter == nullptr) return Fail("there is no filter named '{}'", expr.name);
  return RunFilter(*this, *expr.filter, input, args);
}

Result<Value> Interpreter::EvalTest(const Expr& expr, Frame& frame) {
  TQ_ASSIGN_OR_RETURN(const Value value, Eval(*expr.items[0], frame));
  TQ_ASSIGN_OR_RETURN(const Args args, EvalArgs(*expr.args, frame));
  set_line(expr.line);
  if (expr.test == nullptr) return Fail("there is no test named '{}'", expr.name);
  TQ_ASSIGN_OR_RETURN(const bool passes, RunTest(*this, *expr.test, value, args));
  return Value::Bool(passes);
}

}  // namespace tq::jinja
