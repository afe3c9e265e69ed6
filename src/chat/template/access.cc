// Attributes, items and slices.
#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/methods.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

Result<Value> LoopAttribute(Runtime& rt, const Value& object, std::string_view name) {
  auto& loop = object.As<LoopObject>();
  if (name == "index") return Value::Int(loop.index0 + 1);
  if (name == "index0") return Value::Int(loop.index0);
  if (name == "first") return Value::Bool(loop.index0 == 0);
  if (name == "depth") return Value::Int(loop.depth0 + 1);
  if (name == "depth0") return Value::Int(loop.depth0);
  if (name == "length" || name == "revindex" || name == "revindex0") {
    TQ_ASSIGN_OR_RETURN(const int64_t length, loop.Length(rt));
    if (name == "length") return Value::Int(length);
    return Value::Int(length - loop.index0 - (name == "revindex0" ? 1 : 0));
  }
  if (name == "last" || name == "nextitem") {
    TQ_ASSIGN_OR_RETURN(const Value next, loop.Peek(rt));
    if (name == "last") return Value::Bool(next.IsMissing());
    return next.IsMissing() ? rt.Undefined("there is no next item") : next;
  }
  if (name == "previtem") {
    return loop.previous.IsMissing() ? rt.Undefined("there is no previous item") : loop.previous;
  }
  return Value();
}

Result<Value> MacroAttribute(Runtime& rt, const CallableObject& callable, std::string_view name) {
  if (callable.macro == nullptr) return Value();
  const Function& macro = *callable.macro;
  if (name == "name") return rt.String(macro.name);
  if (name == "catch_kwargs") return Value::Bool(macro.kwargs_slot >= 0);
  if (name == "catch_varargs") return Value::Bool(macro.varargs_slot >= 0);
  if (name == "caller") return Value::Bool(macro.caller_slot >= 0 || macro.explicit_caller);
  if (name != "arguments") return Value();
  std::vector<Value> names;
  for (const std::string& param : macro.param_names) names.push_back(rt.String(param));
  return rt.Tuple(std::move(names));
}

Result<Value> RangeItem(Runtime& rt, const RangeObject& range, int64_t index) {
  if (index < 0) index += range.length;
  if (index < 0 || index >= range.length) return Value();
  TQ_RETURN_IF_ERROR(rt.Step());
  return Value::Int(RangeAt(range, index));
}

// object[key] in Python; kMissing where Python raises.
Result<Value> FindItem(Runtime& rt, const Value& object, const Value& key) {
  if (object.Is(Kind::kDict)) {
    if (key.IsString()) {
      const Value* found = object.dict().Find(key.text());
      return found == nullptr ? Value() : *found;
    }
    if (key.Is(Kind::kList) || key.Is(Kind::kDict)) return Value();
    TQ_ASSIGN_OR_RETURN(const uint64_t hash, HashKey(rt, key));
    const Value* found = object.dict().Find(key, hash);
    return found == nullptr ? Value() : *found;
  }
  if (!key.IsIntegral()) return Value();
  int64_t index = key.integer();
  switch (object.kind()) {
    case Kind::kList:
    case Kind::kTuple: {
      const auto size = static_cast<int64_t>(object.items().size());
      if (index < 0) index += size;
      if (index < 0 || index >= size) return Value();
      return object.items()[static_cast<size_t>(index)];
    }
    case Kind::kString: {
      const auto& string = object.As<StringObject>();
      const auto size = static_cast<int64_t>(string.length);
      if (index < 0) index += size;
      if (index < 0 || index >= size) return Value();
      const bool ascii = string.length == string.text.size();
      if (!ascii) TQ_RETURN_IF_ERROR(rt.StepBytes(string.text.size()));
      size_t begin =
          ascii ? static_cast<size_t>(index) : ByteOffset(string.text, static_cast<size_t>(index));
      size_t end = begin;
      NextCodePoint(string.text, &end);
      return TextLike(rt, object, string.text.substr(begin, end - begin));
    }
    case Kind::kRange:
      return RangeItem(rt, object.As<RangeObject>(), index);
    default:
      return Value();
  }
}

bool IsDunder(std::string_view name) {
  return name.size() >= 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__";
}

}  // namespace

Result<Value> FindAttribute(Runtime& rt, const Value& object, std::string_view name) {
  if (IsDunder(name) && !object.Is(Kind::kNamespace)) {
    return rt.Undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe", name, TypeName(object)));
  }
  switch (object.kind()) {
    case Kind::kNamespace: {
      const Value* found = object.As<NamespaceObject>().attributes.Find(name);
      return found == nullptr ? Value() : *found;
    }
    case Kind::kLoop: {
      TQ_ASSIGN_OR_RETURN(Value attribute, LoopAttribute(rt, object, name));
      if (!attribute.IsMissing()) return attribute;
      break;
    }
    case Kind::kCallable: {
      TQ_ASSIGN_OR_RETURN(Value attribute, MacroAttribute(rt, object.As<CallableObject>(), name));
      if (!attribute.IsMissing()) return attribute;
      break;
    }
    case Kind::kCycler:
      if (name == "current") {
        const auto& cycler = object.As<CyclerObject>();
        return cycler.items[cycler.position];
      }
      if (name == "items") return rt.Tuple(object.As<CyclerObject>().items);
      if (name == "pos")
        return Value::Int(static_cast<int64_t>(object.As<CyclerObject>().position));
      break;
    case Kind::kJoiner:
      if (name == "sep") return object.As<JoinerObject>().separator;
      if (name == "used") return Value::Bool(object.As<JoinerObject>().used);
      break;
    case Kind::kRange:
      if (name == "start") return Value::Int(object.As<RangeObject>().start);
      if (name == "stop") return Value::Int(object.As<RangeObject>().stop);
      if (name == "step") return Value::Int(object.As<RangeObject>().step);
      break;
    case Kind::kTuple:
      if (object.As<ListObject>().is_group) {
        if (name == "grouper") return object.items()[0];
        if (name == "list") return object.items()[1];
      }
      break;
    case Kind::kInt:
    case Kind::kBool:
      if (name == "real" || name == "numerator") return Value::Int(object.integer());
      if (name == "imag") return Value::Int(0);
      if (name == "denominator") return Value::Int(1);
      break;
    case Kind::kFloat:
      if (name == "real") return object;
      if (name == "imag") return Value::Float(0.0);
      break;
    default:
      break;
  }
  return FindMethod(rt, object, name);
}

Result<Value> GetAttr(Runtime& rt, const Value& object, const Value& name) {
  TQ_RETURN_IF_ERROR(rt.Step());
  if (object.IsUndefined()) return rt.FailUndefined(object);
  TQ_ASSIGN_OR_RETURN(Value found, FindAttribute(rt, object, name.text()));
  if (found.IsMissing()) {
    TQ_ASSIGN_OR_RETURN(found, FindItem(rt, object, name));
  }
  return found.IsMissing() ? rt.UndefinedMember(object, name) : found;
}

Result<Value> GetItem(Runtime& rt, const Value& object, const Value& key) {
  TQ_RETURN_IF_ERROR(rt.Step());
  if (object.IsUndefined()) return rt.FailUndefined(object);
  TQ_ASSIGN_OR_RETURN(Value found, FindItem(rt, object, key));
  if (found.IsMissing() && key.IsString()) {
    TQ_ASSIGN_OR_RETURN(found, FindAttribute(rt, object, key.text()));
  }
  return found.IsMissing() ? rt.UndefinedMember(object, key) : found;
}

Result<int64_t> ToIndex(Runtime& rt, const Value& value) {
  if (value.IsUndefined()) return rt.FailUndefined(value);
  if (value.IsIntegral()) return value.integer();
  return rt.Fail("'{}' object cannot be interpreted as an integer", TypeName(value));
}

namespace {
Result<int64_t> Bound(Runtime& rt, const Value& value, int64_t otherwise) {
  if (value.IsMissing() || value.Is(Kind::kNone)) return otherwise;
  if (!value.IsIntegral()) {
    return rt.Fail("slice indices must be integers or None, not {}", TypeName(value));
  }
  return value.integer();
}

int64_t Clamp(int64_t index, int64_t length, int64_t lowest, int64_t highest) {
  if (index < 0) index += length;
  return std::clamp(index, lowest, highest);
}
}  // namespace

Result<std::pair<int64_t, int64_t>> SliceBounds(Runtime& rt, int64_t length, const Value& start,
                                                const Value& stop) {
  TQ_ASSIGN_OR_RETURN(const int64_t begin, Bound(rt, start, 0));
  TQ_ASSIGN_OR_RETURN(const int64_t end, Bound(rt, stop, length));
  return std::pair<int64_t, int64_t>(Clamp(begin, length, 0, length),
                                     Clamp(end, length, 0, length));
}

Result<Value> Slice(Runtime& rt, const Value& object, const Value& start, const Value& stop,
                    const Value& step) {
  if (object.IsUndefined()) return rt.FailUndefined(object);
  const bool is_text = object.IsString();
  if (!is_text && !object.Is(Kind::kList) && !object.Is(Kind::kTuple) && !object.Is(Kind::kRange)) {
    return rt.Fail("'{}' object cannot be sliced", TypeName(object));
  }
  TQ_ASSIGN_OR_RETURN(const int64_t stride, Bound(rt, step, 1));
  if (stride == 0) return rt.Fail("slice step cannot be zero");
  TQ_ASSIGN_OR_RETURN(const int64_t length, Length(rt, object));
  const int64_t lowest = stride > 0 ? 0 : -1;
  const int64_t highest = stride > 0 ? length : length - 1;
  TQ_ASSIGN_OR_RETURN(const int64_t start_bound, Bound(rt, start, 0));
  TQ_ASSIGN_OR_RETURN(const int64_t stop_bound, Bound(rt, stop, 0));
  const auto is_open = [](const Value& v) { return v.IsMissing() || v.Is(Kind::kNone); };
  const int64_t first = is_open(start) ? (stride > 0 ? lowest : highest)
                                       : Clamp(start_bound, length, lowest, highest);
  const int64_t last =
      is_open(stop) ? (stride > 0 ? highest : lowest) : Clamp(stop_bound, length, lowest, highest);
  const int64_t distance = stride > 0 ? last - first : first - last;
  const int64_t magnitude = stride > 0 ? stride : (stride == INT64_MIN ? INT64_MAX : -stride);
  const int64_t count = distance <= 0 ? 0 : (distance - 1) / magnitude + 1;

  if (object.Is(Kind::kRange)) {
    const auto& range = object.As<RangeObject>();
    int64_t new_step = range.step;
    int64_t extent = 0;
    int64_t new_stop = 0;
    const int64_t new_start = RangeAt(range, first);
    if ((count > 1 && __builtin_mul_overflow(range.step, stride, &new_step)) ||
        __builtin_mul_overflow(count, new_step, &extent) ||
        __builtin_add_overflow(new_start, extent, &new_stop)) {
      return rt.Fail("the slice of the range does not fit 64-bit integers");
    }
    return rt.Range(new_start, new_stop, new_step);
  }
  TQ_RETURN_IF_ERROR(rt.Step(1 + count / 16));
  if (is_text && stride == 1) {
    const auto& string = object.As<StringObject>();
    if (count == 0) return TextLike(rt, object, "");
    if (string.length == string.text.size()) {
      return TextLike(rt, object,
                      string.text.substr(static_cast<size_t>(first), static_cast<size_t>(count)));
    }
    TQ_RETURN_IF_ERROR(rt.StepBytes(string.text.size()));
    const size_t begin = ByteOffset(string.text, static_cast<size_t>(first));
    const std::string_view tail = std::string_view(string.text).substr(begin);
    return TextLike(rt, object,
                    std::string(tail.substr(0, ByteOffset(tail, static_cast<size_t>(count)))));
  }
  if (is_text) {
    std::u32string points;
    for (size_t i = 0; i < object.text().size();) points += NextCodePoint(object.text(), &i);
    TQ_RETURN_IF_ERROR(rt.StepBytes(object.text().size()));
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      AppendCodePoint(&text, points[static_cast<size_t>(first + i * stride)]);
    }
    return TextLike(rt, object, std::move(text));
  }
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    items.push_back(object.items()[static_cast<size_t>(first + i * stride)]);
  }
  return object.Is(Kind::kList) ? rt.List(std::move(items)) : rt.Tuple(std::move(items));
}

}  // namespace tq::jinja
