// Filters that make numbers.
#include <cmath>

#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/numbers.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"

namespace tq::jinja {
namespace {

Status DoesNotFit(Runtime& rt, const Value& v) {
  TQ_ASSIGN_OR_RETURN(const std::string text, Str(rt, v));
  return rt.Fail("{} does not fit a 64-bit integer", text);
}

bool FitsInt(double value) { return value > -9.3e18 && value < 9.2233720368547748e18; }

Result<Value> Int(Runtime& rt, const Value& v, const Params& p) {
  if (v.IsUndefined()) return rt.FailUndefined(v);
  const Value otherwise = p.Has(0) ? p[0] : Value::Int(0);
  if (v.IsIntegral()) return Value::Int(v.integer());
  if (v.Is(Kind::kBigInt)) return v;
  if (v.Is(Kind::kFloat)) {
    if (std::isnan(v.real())) return otherwise;
    if (!FitsInt(v.real())) return DoesNotFit(rt, v);
    return Value::Int(static_cast<int64_t>(v.real()));
  }
  if (!v.IsString()) return otherwise;
  TQ_ASSIGN_OR_RETURN(const int64_t base, p.Int(rt, 1, 10));
  int64_t value = 0;
  if (base == 0 || (base >= 2 && base <= 36)) {
    switch (ParseInt(v.text(), static_cast<int>(base), &value)) {
      case IntParse::kOk:
        return Value::Int(value);
      case IntParse::kOverflow:
        return DoesNotFit(rt, v);
      case IntParse::kMalformed:
        break;
    }
  }
  const std::optional<double> real = ParseFloat(v.text());
  if (!real || !std::isfinite(*real)) return otherwise;
  if (!FitsInt(*real)) return DoesNotFit(rt, v);
  return Value::Int(static_cast<int64_t>(*real));
}

Result<Value> Float(Runtime& rt, const Value& v, const Params& p) {
  if (v.IsUndefined()) return rt.FailUndefined(v);
  if (v.IsNumber()) return Value::Float(v.AsDouble());
  const Value otherwise = p.Has(0) ? p[0] : Value::Float(0.0);
  if (!v.IsString()) return otherwise;
  const std::optional<double> real = ParseFloat(v.text());
  return real ? Value::Float(*real) : otherwise;
}

Result<Value> Abs(Runtime& rt, const Value& v, const Params&) {
  if (v.Is(Kind::kFloat)) return Value::Float(std::fabs(v.real()));
  if (v.Is(Kind::kBigInt)) return v;
  if (!v.IsIntegral()) {
    if (v.IsUndefined()) return rt.FailUndefined(v);
    return rt.Fail("bad operand type for abs(): '{}'", TypeName(v));
  }
  return v.integer() < 0 ? Negate(rt, v) : Value::Int(v.integer());
}

// round(int, digits): digits below zero round to tens, hundreds, half to even.
Result<Value> RoundInt(Runtime& rt, const Value& v, int64_t digits) {
  if (digits >= 0) return Value::Int(v.integer());
  if (digits < -18) return Value::Int(0);
  int64_t unit = 1;
  for (int64_t i = 0; i < -digits; ++i) unit *= 10;
  const auto magnitude = Magnitude(v.integer());
  const auto step = static_cast<uint64_t>(unit);
  uint64_t quotient = magnitude / step;
  const uint64_t rest = magnitude % step;
  if (rest > step / 2 || (rest == step / 2 && quotient % 2 == 1)) ++quotient;
  if (quotient > static_cast<uint64_t>(INT64_MAX) / step) return DoesNotFit(rt, v);
  const auto rounded = static_cast<int64_t>(quotient * step);
  return Value::Int(v.integer() < 0 ? -rounded : rounded);
}

Result<Value> Round(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const int64_t digits, p.Int(rt, 0, 0));
  TQ_ASSIGN_OR_RETURN(const std::string method, p.Text(rt, 1, "common"));
  if (method != "common" && method != "ceil" && method != "floor") {
    return rt.Fail("round: the method must be common, ceil or floor");
  }
  if (v.IsUndefined()) return rt.FailUndefined(v);
  if (!v.IsNumber()) return rt.Fail("type {} doesn't define __round__ method", TypeName(v));
  if (v.Is(Kind::kBigInt)) return DoesNotFit(rt, v);
  if (digits > 400 || digits < -400) return rt.Fail("round: {} digits are out of range", digits);
  if (method == "common") {
    if (v.IsIntegral()) return RoundInt(rt, v, digits);
    return Value::Float(RoundFloat(v.real(), static_cast<int>(digits)));
  }
  TQ_ASSIGN_OR_RETURN(const Value scale,
                      Arithmetic(rt, ExprKind::kPower, Value::Int(10), Value::Int(digits)));
  TQ_ASSIGN_OR_RETURN(const Value scaled, Arithmetic(rt, ExprKind::kMultiply, v, scale));
  Value whole = scaled;
  if (scaled.Is(Kind::kFloat)) {
    const double rounded = method == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real());
    if (!FitsInt(rounded)) return DoesNotFit(rt, scaled);
    whole = Value::Int(static_cast<int64_t>(rounded));
  }
  return Arithmetic(rt, ExprKind::kDivide, whole, scale);
}

Result<Value> Sum(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  TQ_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::Parse(rt, p[0]));
  Value total = p.Has(1) ? p[1] : Value::Int(0);
  if (total.IsString()) return rt.Fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : items) {
    TQ_ASSIGN_OR_RETURN(const Value part, path.Get(rt, item));
    TQ_ASSIGN_OR_RETURN(total, Arithmetic(rt, ExprKind::kAdd, total, part));
  }
  return total;
}

Result<Value> FileSizeFormat(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const Value number, Float(rt, v, Params()));
  if (!v.IsNumber() && !(v.IsString() && ParseFloat(v.text()))) {
    return rt.Fail("filesizeformat needs a number, found {}", TypeName(v));
  }
  const bool binary = p.Bool(0, false);
  const double base = binary ? 1024 : 1000;
  const double bytes = number.real();
  if (bytes == 1) return rt.String("1 Byte");
  if (bytes < base) {
    if (!FitsInt(bytes)) return DoesNotFit(rt, number);
    return rt.String(fmt::format("{} Bytes", static_cast<int64_t>(bytes)));
  }
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  size_t i = 0;
  do {
    unit *= base;
  } while (!(bytes < unit) && ++i < kPrefixes.size());
  i = std::min(i, kPrefixes.size() - 1);
  if (!(bytes < unit) && i + 1 == kPrefixes.size()) unit = std::pow(base, 9);
  std::string prefix(1, kPrefixes[i]);
  if (binary) prefix = (i == 0 ? "K" : prefix) + "i";
  return rt.String(FormatFloat(base * bytes / unit, 'f', 1) + " " + prefix + "B");
}

constexpr FilterSpec kFilters[] = {
    {"int", Int, "default base"},
    {"float", Float, "default"},
    {"abs", Abs, ""},
    {"round", Round, "precision method"},
    {"sum", Sum, "attribute start"},
    {"filesizeformat", FileSizeFormat, "binary"},
};

}  // namespace

std::span<const FilterSpec> NumberFilters() { return kFilters; }

}  // namespace tq::jinja
