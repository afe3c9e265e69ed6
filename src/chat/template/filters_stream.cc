// map, select, reject and their attribute forms: lazy, read once.
#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/tests.h"

namespace tq::jinja {
namespace {

int DepthOf(const Value& v, const Args& args) {
  int depth = v.depth();
  for (const Value& arg : args.positional) depth = std::max(depth, arg.depth());
  for (const auto& [name, arg] : args.named) depth = std::max(depth, arg.depth());
  return depth;
}

Status MapByAttribute(Runtime& rt, const Value& v, const Args& args, std::vector<Value>* out) {
  Value attribute;
  Value replacement;
  for (const auto& [name, value] : args.named) {
    if (name == "attribute") {
      attribute = value;
    } else if (name == "default") {
      replacement = value;
    } else {
      return rt.Fail("map: unexpected keyword argument '{}'", name);
    }
  }
  TQ_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::Parse(rt, attribute));
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  for (const Value& item : items) {
    TQ_ASSIGN_OR_RETURN(Value mapped, path.Get(rt, item, replacement));
    out->push_back(std::move(mapped));
  }
  return Status::Ok();
}

Status MapByFilter(Runtime& rt, const Value& v, const Args& args, std::vector<Value>* out) {
  if (args.positional.empty()) return rt.Fail("map requires a filter argument");
  if (!args.positional[0].IsString()) {
    return rt.Fail("map needs the name of a filter, found {}", TypeName(args.positional[0]));
  }
  TQ_ASSIGN_OR_RETURN(const FilterSpec* filter,
                      FindFilter(args.positional[0].text(), rt.line(), /*soft=*/false));
  Args rest{{args.positional.begin() + 1, args.positional.end()}, args.named};
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  for (const Value& item : items) {
    TQ_ASSIGN_OR_RETURN(Value mapped, RunFilter(rt, *filter, item, rest));
    out->push_back(std::move(mapped));
  }
  return Status::Ok();
}

Result<Value> Map(Runtime& rt, const Value& v, const Params& p) {
  const Args& args = p.raw();
  return rt.Generator(DepthOf(v, args), [v, args](Runtime& inner, std::vector<Value>* out) {
    if (!Truthy(v)) return Status::Ok();
    const bool has_attribute =
        std::any_of(args.named.begin(), args.named.end(),
                    [](const auto& arg) { return arg.first == "attribute"; });
    if (args.positional.empty() && has_attribute) return MapByAttribute(inner, v, args, out);
    return MapByFilter(inner, v, args, out);
  });
}

Status SelectItems(Runtime& rt, const Value& v, const Args& args, bool by_attribute, bool wanted,
                   std::vector<Value>* out) {
  if (!Truthy(v)) return Status::Ok();
  size_t used = 0;
  AttributePath path;
  if (by_attribute) {
    if (args.positional.empty()) return rt.Fail("missing parameter for attribute name");
    TQ_ASSIGN_OR_RETURN(path, AttributePath::Parse(rt, args.positional[used++]));
  }
  const TestSpec* test = nullptr;
  Args rest;
  if (args.positional.size() > used) {
    const Value& name = args.positional[used++];
    if (!name.IsString()) return rt.Fail("expected the name of a test, found {}", TypeName(name));
    TQ_ASSIGN_OR_RETURN(test, FindTest(name.text(), rt.line(), /*soft=*/false));
    rest = {{args.positional.begin() + static_cast<int64_t>(used), args.positional.end()},
            args.named};
  }
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  for (const Value& item : items) {
    TQ_ASSIGN_OR_RETURN(const Value tested, path.Get(rt, item));
    bool passes = Truthy(tested);
    if (test != nullptr) {
      TQ_ASSIGN_OR_RETURN(passes, RunTest(rt, *test, tested, rest));
    }
    if (passes == wanted) out->push_back(item);
  }
  return Status::Ok();
}

template <bool by_attribute, bool wanted>
Result<Value> Select(Runtime& rt, const Value& v, const Params& p) {
  const Args& args = p.raw();
  return rt.Generator(DepthOf(v, args), [v, args](Runtime& inner, std::vector<Value>* out) {
    return SelectItems(inner, v, args, by_attribute, wanted, out);
  });
}

constexpr FilterSpec kFilters[] = {
    {"map", Map, "*"},
    {"select", Select<false, true>, "*"},
    {"reject", Select<false, false>, "*"},
    {"selectattr", Select<true, true>, "*"},
    {"rejectattr", Select<true, false>, "*"},
};

}  // namespace

std::span<const FilterSpec> StreamFilters() { return kFilters; }

}  // namespace tq::jinja
