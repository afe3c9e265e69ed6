// Methods of lists, dicts, tuples, numbers, loops and cyclers; the way from a name to a method.
#include "chat/template/methods.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "chat/template/compare.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"

namespace tq::jinja {
namespace {

Result<Value> DictGet(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const uint64_t hash, HashKey(rt, params[0]));
  const Value* found = self.dict().Find(params[0], hash);
  if (found != nullptr) return *found;
  return params.Has(1) ? params[1] : Value::None();
}
Result<Value> DictItems(Runtime& rt, const Value& self, const Params&) {
  return rt.View(self, ViewObject::What::kItems);
}
Result<Value> DictKeys(Runtime& rt, const Value& self, const Params&) {
  return rt.View(self, ViewObject::What::kKeys);
}
Result<Value> DictValues(Runtime& rt, const Value& self, const Params&) {
  return rt.View(self, ViewObject::What::kValues);
}
// Nothing can change a list or dict, so a copy is the thing itself.
Result<Value> Copy(Runtime&, const Value& self, const Params&) { return self; }

Result<Value> SequenceCount(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, self));
  int64_t count = 0;
  for (const Value& item : items) {
    TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, item, params[0]));
    if (equal) ++count;
  }
  return Value::Int(count);
}

Result<Value> SequenceIndex(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, self));
  TQ_ASSIGN_OR_RETURN(const auto bounds,
                      SliceBounds(rt, static_cast<int64_t>(items.size()), params[1], params[2]));
  for (int64_t i = bounds.first; i < bounds.second; ++i) {
    TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, items[static_cast<size_t>(i)], params[0]));
    if (equal) return Value::Int(i);
  }
  TQ_ASSIGN_OR_RETURN(const std::string text, Repr(rt, params[0]));
  return rt.Fail("{} is not in {}", text, TypeName(self));
}

Result<Value> FloatIsInteger(Runtime&, const Value& self, const Params&) {
  return Value::Bool(std::isfinite(self.real()) && self.real() == std::floor(self.real()));
}
Result<Value> IntBitLength(Runtime&, const Value& self, const Params&) {
  uint64_t magnitude = self.integer() < 0 ? 0 - static_cast<uint64_t>(self.integer())
                                          : static_cast<uint64_t>(self.integer());
  int64_t bits = 0;
  for (; magnitude != 0; magnitude >>= 1) ++bits;
  return Value::Int(bits);
}

Result<Value> LoopCycle(Runtime& rt, const Value& self, const Params& params) {
  const std::vector<Value>& choices = params.raw().positional;
  if (choices.empty()) return rt.Fail("loop.cycle() needs something to cycle through");
  const int64_t index = std::max<int64_t>(self.As<LoopObject>().index0, 0);
  return choices[static_cast<size_t>(index) % choices.size()];
}

Result<Value> LoopChanged(Runtime& rt, const Value& self, const Params& params) {
  auto& loop = self.As<LoopObject>();
  const Value now = rt.Tuple(params.raw().positional);
  if (!loop.last_changed.IsMissing()) {
    TQ_ASSIGN_OR_RETURN(const bool equal, Equal(rt, loop.last_changed, now));
    if (equal) return Value::Bool(false);
  }
  // A loop that has ended keeps nothing: the value could contain the loop.
  if (loop.source != nullptr) loop.last_changed = now;
  return Value::Bool(true);
}

Result<Value> CyclerNext(Runtime&, const Value& self, const Params&) {
  auto& cycler = self.As<CyclerObject>();
  Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}
Result<Value> CyclerReset(Runtime&, const Value& self, const Params&) {
  self.As<CyclerObject>().position = 0;
  return Value::None();
}

constexpr MethodSpec kDictMethods[] = {
    {"get", DictGet, "key default", 1}, {"items", DictItems, ""}, {"keys", DictKeys, ""},
    {"values", DictValues, ""},         {"copy", Copy, ""},
};
constexpr MethodSpec kListMethods[] = {
    {"count", SequenceCount, "value", 1},
    {"index", SequenceIndex, "value start stop", 1},
    {"copy", Copy, ""},
};
constexpr MethodSpec kTupleMethods[] = {
    {"count", SequenceCount, "value", 1},
    {"index", SequenceIndex, "value start stop", 1},
};
constexpr MethodSpec kFloatMethods[] = {{"is_integer", FloatIsInteger, ""}};
constexpr MethodSpec kIntMethods[] = {{"bit_length", IntBitLength, ""}};
constexpr MethodSpec kLoopMethods[] = {{"cycle", LoopCycle, "*"}, {"changed", LoopChanged, "*"}};
constexpr MethodSpec kCyclerMethods[] = {{"next", CyclerNext, ""}, {"reset", CyclerReset, ""}};

// Names that Python has and this engine does not; using one is an error, not an undefined.
constexpr std::string_view kStringGaps[] = {"encode", "maketrans", "translate"};
constexpr std::string_view kDictGaps[] = {"fromkeys"};
constexpr std::string_view kNumberGaps[] = {"as_integer_ratio", "bit_count", "conjugate", "fromhex",
                                            "from_bytes",       "hex",       "to_bytes"};

// What would change a list or dict.
constexpr std::string_view kListChanges[] = {"append", "clear", "pop",    "reverse",
                                             "insert", "sort",  "extend", "remove"};
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};

bool IsOneOf(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsGap(Kind kind, std::string_view name) {
  switch (kind) {
    case Kind::kString:
      return IsOneOf(kStringGaps, name);
    case Kind::kDict:
      return IsOneOf(kDictGaps, name);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return IsOneOf(kNumberGaps, name);
    default:
      return false;
  }
}

const MethodSpec* FindSpec(Kind kind, std::string_view name) {
  const std::array<std::span<const MethodSpec>, 2> tables =
      kind == Kind::kString
          ? std::array<std::span<const MethodSpec>, 2>{StringMethods(), StringTests()}
          : std::array<std::span<const MethodSpec>, 2>{ContainerMethods(kind), {}};
  for (const std::span<const MethodSpec> table : tables) {
    for (const MethodSpec& spec : table) {
      if (spec.name == name) return &spec;
    }
  }
  return nullptr;
}

Result<Value> RunMethod(Runtime& rt, const Value& self, const Args& args) {
  const auto& method = self.As<CallableObject>();
  const MethodSpec* spec = FindSpec(method.self.kind(), method.name);
  if (spec == nullptr) return Internal("a bound method without a table entry");
  TQ_ASSIGN_OR_RETURN(const Params params,
                      Params::Bind(rt, spec->name, spec->params, spec->required, args));
  return spec->run(rt, method.self, params);
}

}  // namespace

std::span<const MethodSpec> ContainerMethods(Kind kind) {
  switch (kind) {
    case Kind::kDict:
      return kDictMethods;
    case Kind::kList:
      return kListMethods;
    case Kind::kTuple:
    case Kind::kRange:
      return kTupleMethods;
    case Kind::kFloat:
      return kFloatMethods;
    case Kind::kInt:
    case Kind::kBool:
      return kIntMethods;
    case Kind::kLoop:
      return kLoopMethods;
    case Kind::kCycler:
      return kCyclerMethods;
    default:
      return {};
  }
}

Result<Value> FindMethod(Runtime& rt, const Value& object, std::string_view name) {
  const Kind kind = object.kind();
  if (FindSpec(kind, name) != nullptr) return rt.Method(std::string(name), object, RunMethod);
  if ((kind == Kind::kList && IsOneOf(kListChanges, name)) ||
      (kind == Kind::kDict && IsOneOf(kDictChanges, name))) {
    return rt.Undefined(fmt::format("{}.{}() is not allowed: templates may not change a {}",
                                    TypeName(object), name, TypeName(object)));
  }
  if (IsGap(kind, name)) {
    return rt.Fail("the attribute '{}' of {} objects is not supported", name, TypeName(object));
  }
  return Value();
}

}  // namespace tq::jinja
