#include "chat/template/compare.h"

#include <algorithm>
#include <cmath>
#include <compare>

#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

constexpr double kTwo63 = 9223372036854775808.0;

std::partial_ordering OrderIntFloat(int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= kTwo63) return std::partial_ordering::less;
  if (b < -kTwo63) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  const auto truncated = static_cast<int64_t>(whole);
  if (a != truncated) return a <=> truncated;
  return 0.0 <=> (b - whole);
}

std::partial_ordering OrderNumbers(const Value& a, const Value& b) {
  if (a.IsIntegral() && b.IsIntegral()) return a.integer() <=> b.integer();
  if (a.Is(Kind::kBigInt) && b.Is(Kind::kBigInt)) return a.big_integer() <=> b.big_integer();
  if (a.Is(Kind::kBigInt) && b.IsIntegral()) return std::partial_ordering::greater;
  if (a.IsIntegral() && b.Is(Kind::kBigInt)) return std::partial_ordering::less;
  if (a.IsIntegral()) return OrderIntFloat(a.integer(), b.real());
  if (b.IsIntegral()) {
    const std::partial_ordering reversed = OrderIntFloat(b.integer(), a.real());
    return 0 <=> reversed;
  }
  return a.AsDouble() <=> b.AsDouble();
}

std::string_view OpName(CompareOp op) {
  switch (op) {
    case CompareOp::kLt:
      return "<";
    case CompareOp::kLe:
      return "<=";
    case CompareOp::kGt:
      return ">";
    case CompareOp::kGe:
      return ">=";
    default:
      return "==";
  }
}

bool Holds(CompareOp op, std::partial_ordering order) {
  switch (op) {
    case CompareOp::kLt:
      return order < 0;
    case CompareOp::kLe:
      return order <= 0;
    case CompareOp::kGt:
      return order > 0;
    case CompareOp::kGe:
      return order >= 0;
    default:
      return order == 0;
  }
}

bool RangesEqual(const RangeObject& a, const RangeObject& b) {
  if (a.length != b.length) return false;
  if (a.length == 0) return true;
  return a.start == b.start && (a.length == 1 || a.step == b.step);
}

Result<bool> ItemsEqual(Runtime& rt, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, a[i], b[i]));
    if (!equal) return false;
  }
  return true;
}

Result<bool> DictsEqual(Runtime& rt, const DictObject& a, const DictObject& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (size_t i = 0; i < a.entries.size(); ++i) {
    const Value* other = b.Find(a.entries[i].first, a.hashes[i]);
    if (other == nullptr) return false;
    TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, a.entries[i].second, *other));
    if (!equal) return false;
  }
  return true;
}

Result<bool> OrderItems(Runtime& rt, CompareOp op, const std::vector<Value>& a,
                        const std::vector<Value>& b) {
  const size_t common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) {
    TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, a[i], b[i]));
    if (!equal) return Compare(rt, op, a[i], b[i]);
  }
  return Holds(op, a.size() <=> b.size());
}

}  // namespace

bool KeysEqual(const Value& a, const Value& b) {
  if (a.IsNumber() && b.IsNumber()) return OrderNumbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNone:
    case Kind::kUndefined:
      return true;
    case Kind::kString:
      return a.text() == b.text();
    case Kind::kRange:
      return RangesEqual(a.As<RangeObject>(), b.As<RangeObject>());
    case Kind::kTuple:
      return a.object() == b.object() || std::equal(a.items().begin(), a.items().end(),
                                                    b.items().begin(), b.items().end(), KeysEqual);
    default:
      return a.object() == b.object();
  }
}

Result<uint64_t> HashKey(Runtime& rt, const Value& key) {
  TQ_RETURN_IF_ERROR(rt.Step());
  switch (key.kind()) {
    case Kind::kString:
      return HashText(key.text());
    case Kind::kNone:
    case Kind::kUndefined:
      return uint64_t{11};
    case Kind::kBool:
    case Kind::kInt:
      return std::hash<double>{}(static_cast<double>(key.integer()));
    case Kind::kBigInt:
    case Kind::kFloat:
      return std::hash<double>{}(key.AsDouble());
    case Kind::kTuple: {
      uint64_t hash = 1469598103934665603ull;
      for (const Value& item : key.items()) {
        TQ_ASSIGN_OR_RETURN(const uint64_t part, HashKey(rt, item));
        hash = (hash ^ part) * 1099511628211ull;
      }
      return hash;
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      return rt.Fail("unhashable type: '{}'", TypeName(key));
    case Kind::kRange:
      return static_cast<uint64_t>(key.As<RangeObject>().length);
    default:
      return reinterpret_cast<uintptr_t>(key.object());
  }
}

Result<bool> Equal(Runtime& rt, const Value& a, const Value& b) {
  TQ_RETURN_IF_ERROR(rt.Step());
  if (a.kind() == b.kind()) {
    if (a.object() != nullptr && a.object() == b.object()) return true;
    switch (a.kind()) {
      case Kind::kList:
      case Kind::kTuple:
        return ItemsEqual(rt, a.items(), b.items());
      case Kind::kDict:
        return DictsEqual(rt, a.dict(), b.dict());
      case Kind::kString: {
        TQ_RETURN_IF_ERROR(rt.StepBytes(a.text().size()));
        return a.text() == b.text();
      }
      case Kind::kView: {
        const auto& left = a.As<ViewObject>();
        const auto& right = b.As<ViewObject>();
        if (left.what != right.what || left.what == ViewObject::What::kValues) return false;
        if (left.what == ViewObject::What::kItems) return Equal(rt, left.dict, right.dict);
        const DictObject& other = right.dict.dict();
        if (left.dict.dict().entries.size() != other.entries.size()) return false;
        for (size_t i = 0; i < other.entries.size(); ++i) {
          if (left.dict.dict().Find(other.entries[i].first, other.hashes[i]) == nullptr) {
            return false;
          }
        }
        return true;
      }
      default:
        break;
    }
  }
  return KeysEqual(a, b);
}

Result<bool> Compare(Runtime& rt, CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::kEq:
      return Equal(rt, a, b);
    case CompareOp::kNe: {
      TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, a, b));
      return !equal;
    }
    case CompareOp::kIn:
      return Contains(rt, b, a);
    case CompareOp::kNotIn: {
      TQ_ASSIGN_OR_RETURN(const bool found, Contains(rt, b, a));
      return !found;
    }
    default:
      break;
  }
  TQ_RETURN_IF_ERROR(rt.Step());
  if (a.IsUndefined()) return rt.FailUndefined(a);
  if (b.IsUndefined()) return rt.FailUndefined(b);
  if (a.IsNumber() && b.IsNumber()) return Holds(op, OrderNumbers(a, b));
  // UTF-8 orders like code points.
  if (a.IsString() && b.IsString()) return Holds(op, a.text() <=> b.text());
  if (a.kind() == b.kind() && (a.Is(Kind::kList) || a.Is(Kind::kTuple))) {
    return OrderItems(rt, op, a.items(), b.items());
  }
  return rt.Fail("'{}' not supported between instances of '{}' and '{}'", OpName(op), TypeName(a),
                 TypeName(b));
}

Result<bool> Contains(Runtime& rt, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.IsString()) {
        return rt.Fail("'in <string>' requires string as left operand, not {}", TypeName(item));
      }
      TQ_RETURN_IF_ERROR(rt.StepBytes(container.text().size()));
      return FindText(container.text(), item.text()) != std::string_view::npos;
    case Kind::kDict: {
      TQ_ASSIGN_OR_RETURN(const uint64_t hash, HashKey(rt, item));
      return container.dict().Find(item, hash) != nullptr;
    }
    case Kind::kList:
    case Kind::kTuple:
      for (const Value& other : container.items()) {
        TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, other, item));
        if (equal) return true;
      }
      return false;
    case Kind::kGenerator: {
      auto& generator = container.As<GeneratorObject>();
      TQ_RETURN_IF_ERROR(FillGenerator(rt, generator));
      while (generator.position < generator.items.size()) {
        TQ_ASSIGN_OR_RETURN(const bool equal,
                            Equal(rt, generator.items[generator.position++], item));
        if (equal) return true;
      }
      return false;
    }
    default:
      break;
  }
  if (!IsIterable(container)) {
    return rt.Fail("argument of type '{}' is not iterable", TypeName(container));
  }
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, container));
  for (const Value& other : items) {
    TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, other, item));
    if (equal) return true;
  }
  return false;
}

bool Truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.real() != 0.0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.items().empty();
    case Kind::kDict:
      return !value.dict().entries.empty();
    case Kind::kView:
      return !value.As<ViewObject>().dict.dict().entries.empty();
    case Kind::kRange:
      return value.As<RangeObject>().length != 0;
    default:
      return true;
  }
}

}  // namespace tq::jinja
