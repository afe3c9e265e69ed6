#include "chat/template/operators.h"

#include <cmath>

#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

std::string_view Symbol(ExprKind kind) {
  switch (kind) {
    case ExprKind::kAdd:
      return "+";
    case ExprKind::kSubtract:
      return "-";
    case ExprKind::kMultiply:
      return "*";
    case ExprKind::kDivide:
      return "/";
    case ExprKind::kFloorDivide:
      return "//";
    case ExprKind::kModulo:
      return "%";
    default:
      return "**";
  }
}

Status Overflow(const Runtime& rt, ExprKind kind) {
  return rt.Fail("the result of '{}' does not fit a 64-bit integer", Symbol(kind));
}

Status DivisionByZero(const Runtime& rt) { return rt.Fail("division by zero"); }

Result<Value> IntPower(Runtime& rt, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return DivisionByZero(rt);
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  int64_t square = base;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, square, &result)) {
      return Overflow(rt, ExprKind::kPower);
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(square, square, &square)) {
      return Overflow(rt, ExprKind::kPower);
    }
  }
  return Value::Int(result);
}

Result<Value> IntArithmetic(Runtime& rt, ExprKind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (kind) {
    case ExprKind::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return Overflow(rt, kind);
      return Value::Int(result);
    case ExprKind::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return Overflow(rt, kind);
      return Value::Int(result);
    case ExprKind::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return Overflow(rt, kind);
      return Value::Int(result);
    case ExprKind::kDivide:
      if (b == 0) return DivisionByZero(rt);
      return Value::Float(static_cast<double>(a) / static_cast<double>(b));
    case ExprKind::kFloorDivide:
    case ExprKind::kModulo: {
      if (b == 0) return DivisionByZero(rt);
      if (b == -1)
        return kind == ExprKind::kModulo ? Value::Int(0)
                                         : IntArithmetic(rt, ExprKind::kSubtract, 0, a);
      int64_t quotient = a / b;
      int64_t rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        --quotient;
      }
      return Value::Int(kind == ExprKind::kModulo ? rest : quotient);
    }
    default:
      return IntPower(rt, a, b);
  }
}

// Python's float divmod: the rest has the sign of the divisor.
void FloatDivMod(double a, double b, double* quotient, double* rest) {
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0.0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1.0;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  if (div != 0.0) {
    *quotient = std::floor(div);
    if (div - *quotient > 0.5) *quotient += 1.0;
  } else {
    *quotient = std::copysign(0.0, a / b);
  }
  *rest = mod;
}

Result<Value> FloatArithmetic(Runtime& rt, ExprKind kind, double a, double b) {
  switch (kind) {
    case ExprKind::kAdd:
      return Value::Float(a + b);
    case ExprKind::kSubtract:
      return Value::Float(a - b);
    case ExprKind::kMultiply:
      return Value::Float(a * b);
    case ExprKind::kDivide:
      if (b == 0) return DivisionByZero(rt);
      return Value::Float(a / b);
    case ExprKind::kFloorDivide:
    case ExprKind::kModulo: {
      if (b == 0) return DivisionByZero(rt);
      double quotient = 0;
      double rest = 0;
      FloatDivMod(a, b, &quotient, &rest);
      return Value::Float(kind == ExprKind::kModulo ? rest : quotient);
    }
    default: {
      if (a == 0 && b < 0) return DivisionByZero(rt);
      if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
        return rt.Fail("a negative number to a fractional power is a complex number");
      }
      const double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        return rt.Fail("the result of '**' is out of range");
      }
      return Value::Float(result);
    }
  }
}

Result<Value> AddText(Runtime& rt, const Value& a, const Value& b) {
  TQ_RETURN_IF_ERROR(rt.CheckBytes(a.text().size() + b.text().size()));
  TQ_RETURN_IF_ERROR(rt.StepBytes(a.text().size() + b.text().size()));
  const bool markup = a.As<StringObject>().markup || b.As<StringObject>().markup;
  std::string text;
  for (const Value* part : {&a, &b}) {
    if (markup && !part->As<StringObject>().markup) {
      text += EscapeHtml(part->text());
    } else {
      text += part->text();
    }
  }
  return rt.String(std::move(text), markup);
}

Result<Value> AddItems(Runtime& rt, const Value& a, const Value& b) {
  TQ_RETURN_IF_ERROR(rt.CheckItems(a.items().size() + b.items().size()));
  TQ_RETURN_IF_ERROR(rt.Step(static_cast<int64_t>(1 + (a.items().size() + b.items().size()) / 4)));
  std::vector<Value> items;
  items.reserve(a.items().size() + b.items().size());
  items.insert(items.end(), a.items().begin(), a.items().end());
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.Is(Kind::kList) ? rt.List(std::move(items)) : rt.Tuple(std::move(items));
}

Result<Value> Repeat(Runtime& rt, const Value& sequence, int64_t times) {
  const auto count = static_cast<uint64_t>(times < 0 ? 0 : times);
  const bool is_text = sequence.IsString();
  const uint64_t unit = is_text ? sequence.text().size() : sequence.items().size();
  uint64_t total = 0;
  if (__builtin_mul_overflow(count, unit, &total)) total = UINT64_MAX;
  if (is_text) {
    TQ_RETURN_IF_ERROR(rt.CheckBytes(total));
    TQ_RETURN_IF_ERROR(rt.StepBytes(total));
    std::string text;
    text.reserve(total);
    while (text.size() < total) text += sequence.text();
    return TextLike(rt, sequence, std::move(text));
  }
  TQ_RETURN_IF_ERROR(rt.CheckItems(total));
  TQ_RETURN_IF_ERROR(rt.Step(static_cast<int64_t>(1 + total / 4)));
  std::vector<Value> items;
  items.reserve(total);
  while (items.size() < total) {
    items.insert(items.end(), sequence.items().begin(), sequence.items().end());
  }
  return sequence.Is(Kind::kList) ? rt.List(std::move(items)) : rt.Tuple(std::move(items));
}

bool IsRepeatable(const Value& value) {
  return value.IsString() || value.Is(Kind::kList) || value.Is(Kind::kTuple);
}

}  // namespace

Result<Value> Arithmetic(Runtime& rt, ExprKind kind, const Value& a, const Value& b) {
  if (kind == ExprKind::kModulo && a.IsString()) return FormatPercent(rt, a, b);
  if (a.IsUndefined()) return rt.FailUndefined(a);
  if (b.IsUndefined()) return rt.FailUndefined(b);
  if (a.IsIntegral() && b.IsIntegral()) return IntArithmetic(rt, kind, a.integer(), b.integer());
  if (a.IsNumber() && b.IsNumber()) {
    if (!a.Is(Kind::kFloat) && !b.Is(Kind::kFloat)) return Overflow(rt, kind);
    return FloatArithmetic(rt, kind, a.AsDouble(), b.AsDouble());
  }
  if (kind == ExprKind::kAdd && a.kind() == b.kind()) {
    if (a.IsString()) return AddText(rt, a, b);
    if (a.Is(Kind::kList) || a.Is(Kind::kTuple)) return AddItems(rt, a, b);
  }
  if (kind == ExprKind::kMultiply) {
    if (IsRepeatable(a) && b.IsIntegral()) return Repeat(rt, a, b.integer());
    if (IsRepeatable(b) && a.IsIntegral()) return Repeat(rt, b, a.integer());
  }
  if (kind == ExprKind::kAdd && a.IsString()) {
    return rt.Fail("can only concatenate str (not \"{}\") to str", TypeName(b));
  }
  return rt.Fail("unsupported operand type(s) for {}: '{}' and '{}'", Symbol(kind), TypeName(a),
                 TypeName(b));
}

Result<Value> Negate(Runtime& rt, const Value& value) {
  if (value.IsUndefined()) return rt.FailUndefined(value);
  if (value.IsIntegral()) return IntArithmetic(rt, ExprKind::kSubtract, 0, value.integer());
  if (value.Is(Kind::kFloat)) return Value::Float(-value.real());
  return rt.Fail("bad operand type for unary -: '{}'", TypeName(value));
}

Result<Value> Plus(Runtime& rt, const Value& value) {
  if (value.IsUndefined()) return rt.FailUndefined(value);
  if (value.IsIntegral()) return Value::Int(value.integer());
  if (value.IsNumber()) return value;
  return rt.Fail("bad operand type for unary +: '{}'", TypeName(value));
}

Result<Value> SoftStr(Runtime& rt, const Value& value) {
  if (value.IsString()) return value;
  TQ_ASSIGN_OR_RETURN(std::string text, Str(rt, value));
  return rt.String(std::move(text));
}

Result<Value> Escaped(Runtime& rt, const Value& value) {
  if (value.IsString() && value.As<StringObject>().markup) return value;
  TQ_ASSIGN_OR_RETURN(const std::string text, Str(rt, value));
  TQ_RETURN_IF_ERROR(rt.CheckBytes(text.size() * 5));
  return rt.String(EscapeHtml(text), /*markup=*/true);
}

Value TextLike(Runtime& rt, const Value& like, std::string text) {
  return rt.String(std::move(text), like.IsString() && like.As<StringObject>().markup);
}

}  // namespace tq::jinja
