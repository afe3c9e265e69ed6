#include "chat/template/functions.h"

#include <chrono>
#include <ctime>

#include "chat/template/compare.h"
#include "chat/template/operators.h"
#include "chat/template/params.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"

namespace tq::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // the sandbox's bound

Result<Value> RaiseException(Runtime& rt, const Value&, const Args& args) {
  TQ_ASSIGN_OR_RETURN(const Params params, Params::Bind(rt, "raise_exception", "message", 1, args));
  TQ_ASSIGN_OR_RETURN(const std::string message, Str(rt, params[0]));
  return rt.Fail(std::string_view(message));
}

Result<Value> StrftimeNow(Runtime& rt, const Value&, const Args& args) {
  TQ_ASSIGN_OR_RETURN(const Params params, Params::Bind(rt, "strftime_now", "format", 1, args));
  TQ_ASSIGN_OR_RETURN(std::string format, params.Text(rt, 0, ""));
  if (format.size() > 1000) return rt.Fail("strftime_now: the format is too long");
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() %
      1000000;
  std::tm local{};
  localtime_r(&seconds, &local);
  // A naive datetime has no zone, and %f is Python's own.
  std::string clean;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      clean += format[i];
      continue;
    }
    const char directive = format[++i];
    if (directive == 'f') {
      clean += fmt::format("{:06}", micros);
    } else if (directive != 'z' && directive != 'Z') {
      clean += '%';
      clean += directive;
    }
  }
  clean += '.';  // so that an empty result differs from a failure
  std::string text(clean.size() * 64 + 64, '\0');
  const size_t length = std::strftime(text.data(), text.size(), clean.c_str(), &local);
  if (length == 0) return rt.Fail("strftime_now: the format cannot be rendered");
  text.resize(length - 1);
  return rt.String(std::move(text));
}

Result<Value> MakeRange(Runtime& rt, const Value&, const Args& args) {
  if (!args.named.empty()) return rt.Fail("range() takes no keyword arguments");
  const size_t count = args.positional.size();
  if (count == 0 || count > 3) {
    return rt.Fail("range expected 1 to 3 arguments, found {}", count);
  }
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < count; ++i) {
    TQ_ASSIGN_OR_RETURN(bounds[count == 1 ? 1 : i], ToIndex(rt, args.positional[i]));
  }
  if (bounds[2] == 0) return rt.Fail("range() arg 3 must not be zero");
  const Value range = rt.Range(bounds[0], bounds[1], bounds[2]);
  if (range.As<RangeObject>().length > kMaxRange) {
    return rt.Fail("range too big: the sandbox allows {} items", kMaxRange);
  }
  return range;
}

// What dict(...) and namespace(...) are made of: a mapping or pairs, then names.
Result<Value> MakeDict(Runtime& rt, const Value&, const Args& args) {
  if (args.positional.size() > 1) {
    return rt.Fail("dict expected at most 1 argument, found {}", args.positional.size());
  }
  DictBuilder dict(rt);
  if (!args.positional.empty() && args.positional[0].Is(Kind::kDict)) {
    for (const auto& [key, value] : args.positional[0].dict().entries) {
      TQ_RETURN_IF_ERROR(dict.Set(key, value));
    }
  } else if (!args.positional.empty()) {
    TQ_ASSIGN_OR_RETURN(const std::vector<Value> pairs, Iterate(rt, args.positional[0]));
    for (const Value& pair : pairs) {
      TQ_ASSIGN_OR_RETURN(const std::vector<Value> entry, Iterate(rt, pair));
      if (entry.size() != 2) return rt.Fail("dict() needs pairs of a key and a value");
      TQ_RETURN_IF_ERROR(dict.Set(entry[0], entry[1]));
    }
  }
  for (const auto& [name, value] : args.named) dict.Set(name, value);
  return dict.Take();
}

Result<Value> MakeNamespace(Runtime& rt, const Value& self, const Args& args) {
  TQ_ASSIGN_OR_RETURN(const Value dict, MakeDict(rt, self, args));
  const Value space = rt.Namespace();
  auto& object = space.As<NamespaceObject>();
  const DictObject& source = dict.dict();
  rt.Charge(&object, source.entries.size() * (2 * sizeof(Value) + 32));
  for (size_t i = 0; i < source.entries.size(); ++i) {
    object.attributes.Set(source.entries[i].first, source.hashes[i], source.entries[i].second);
  }
  return space;
}

Result<Value> MakeCycler(Runtime& rt, const Value&, const Args& args) {
  if (args.positional.empty()) return rt.Fail("cycler() needs at least one item");
  const Value items = rt.Tuple(args.positional);
  auto object = rt.New<CyclerObject>(0, items.depth() + 1);
  object->items = args.positional;
  return Value(Kind::kCycler, std::move(object));
}

Result<Value> MakeJoiner(Runtime& rt, const Value&, const Args& args) {
  TQ_ASSIGN_OR_RETURN(const Params params, Params::Bind(rt, "joiner", "sep", 0, args));
  auto object = rt.New<JoinerObject>(0, params[0].depth() + 1);
  object->separator = params.Has(0) ? params[0] : rt.String(", ");
  return Value(Kind::kJoiner, std::move(object));
}

struct GlobalFunction {
  std::string_view name;
  Result<Value> (*native)(Runtime&, const Value&, const Args&);
};
constexpr GlobalFunction kGlobals[] = {
    {"range", MakeRange},         {"dict", MakeDict},     {"namespace", MakeNamespace},
    {"cycler", MakeCycler},       {"joiner", MakeJoiner}, {"raise_exception", RaiseException},
    {"strftime_now", StrftimeNow}};

}  // namespace

Value FindGlobal(Runtime& rt, std::string_view name) {
  for (const GlobalFunction& function : kGlobals) {
    if (function.name == name) {
      return rt.Method(std::string(name), Value(), function.native);
    }
  }
  return Value();
}

}  // namespace tq::jinja
