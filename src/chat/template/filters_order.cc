// Filters that sort, group and pick by order.
#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

Result<std::vector<Value>> KeysOf(Runtime& rt, const std::vector<Value>& items,
                                  const AttributePath& path, bool case_sensitive,
                                  const Value& replacement = {}) {
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) {
    TQ_RETURN_IF_ERROR(rt.Step());
    TQ_ASSIGN_OR_RETURN(Value key, path.Get(rt, item, replacement));
    keys.push_back(case_sensitive ? std::move(key) : IgnoreCase(rt, key));
  }
  return keys;
}

// Python sorts in reverse stably: equal items keep their order.
Result<std::vector<size_t>> OrderOf(Runtime& rt, const std::vector<Value>& keys, bool reverse) {
  return SortedOrder(rt, keys.size(), [&](size_t a, size_t b) {
    return reverse ? Compare(rt, CompareOp::kLt, keys[b], keys[a])
                   : Compare(rt, CompareOp::kLt, keys[a], keys[b]);
  });
}

std::vector<Value> Reordered(const std::vector<Value>& items, const std::vector<size_t>& order) {
  std::vector<Value> out;
  out.reserve(items.size());
  for (const size_t i : order) out.push_back(items[i]);
  return out;
}

Result<Value> DictSort(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const std::string by, p.Text(rt, 1, "key"));
  if (by != "key" && by != "value") {
    return rt.Fail("dictsort: you can only sort by either \"key\" or \"value\"");
  }
  if (v.IsUndefined()) return rt.FailUndefined(v);
  if (!v.Is(Kind::kDict)) return rt.Fail("dictsort needs a dict, found {}", TypeName(v));
  std::vector<Value> pairs;
  std::vector<Value> keys;
  for (const auto& [key, value] : v.dict().entries) {
    pairs.push_back(rt.Tuple({key, value}));
    const Value& sort_key = by == "key" ? key : value;
    keys.push_back(p.Bool(0, false) ? sort_key : IgnoreCase(rt, sort_key));
  }
  TQ_ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOf(rt, keys, p.Bool(2, false)));
  return rt.List(Reordered(pairs, order));
}

// attribute may list several paths, "age,name": the keys are lists then.
Result<Value> Sort(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  const bool case_sensitive = p.Bool(1, false);
  std::vector<Value> names = {p[2]};
  if (p.Has(2) && p[2].IsString()) {
    names.clear();
    for (const std::string_view part : SplitOn(p[2].text(), ",", -1, /*from_right=*/false)) {
      names.push_back(rt.String(std::string(part)));
    }
  }
  std::vector<AttributePath> paths;
  for (const Value& name : names) {
    TQ_ASSIGN_OR_RETURN(AttributePath path, AttributePath::Parse(rt, name));
    paths.push_back(std::move(path));
  }
  std::vector<Value> keys;
  for (const Value& item : items) {
    TQ_RETURN_IF_ERROR(rt.Step());
    std::vector<Value> parts;
    for (const AttributePath& path : paths) {
      TQ_ASSIGN_OR_RETURN(Value part, path.Get(rt, item));
      parts.push_back(case_sensitive ? std::move(part) : IgnoreCase(rt, part));
    }
    keys.push_back(rt.List(std::move(parts)));
  }
  TQ_ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOf(rt, keys, p.Bool(0, false)));
  return rt.List(Reordered(items, order));
}

Result<Value> Unique(Runtime& rt, const Value& v, const Params& p) {
  const bool case_sensitive = p.Bool(0, false);
  TQ_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::Parse(rt, p[1]));
  return rt.Generator(v.depth(),
                      [v, path, case_sensitive](Runtime& inner, std::vector<Value>* out) -> Status {
                        TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(inner, v));
                        TQ_ASSIGN_OR_RETURN(const std::vector<Value> keys,
                                            KeysOf(inner, items, path, case_sensitive));
                        DictObject seen;
                        for (size_t i = 0; i < items.size(); ++i) {
                          TQ_ASSIGN_OR_RETURN(const uint64_t hash, HashKey(inner, keys[i]));
                          if (seen.Find(keys[i], hash) != nullptr) continue;
                          seen.Set(keys[i], hash, Value::None());
                          out->push_back(items[i]);
                        }
                        return Status::Ok();
                      });
}

template <CompareOp op>
Result<Value> Extreme(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  if (items.empty()) return rt.Undefined("No aggregated item, sequence was empty.");
  TQ_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::Parse(rt, p[1]));
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> keys, KeysOf(rt, items, path, p.Bool(0, false)));
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    TQ_ASSIGN_OR_RETURN(const bool better, Compare(rt, op, keys[i], keys[best]));
    if (better) best = i;
  }
  return items[best];
}

Result<Value> GroupBy(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  TQ_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::Parse(rt, p[0]));
  const bool case_sensitive = p.Bool(2, false);
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> keys, KeysOf(rt, items, path, case_sensitive, p[1]));
  TQ_ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOf(rt, keys, /*reverse=*/false));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < order.size();) {
    std::vector<Value> members;
    const Value& key = keys[order[begin]];
    size_t end = begin;
    while (end < order.size()) {
      TQ_ASSIGN_OR_RETURN(const bool same, Equal(rt, keys[order[end]], key));
      if (!same) break;
      members.push_back(items[order[end++]]);
    }
    // The group is named by its first member, in that one's case.
    Value name = key;
    if (!case_sensitive) {
      TQ_ASSIGN_OR_RETURN(name, path.Get(rt, members[0], p[1]));
    }
    const Value group = rt.Tuple({name, rt.List(std::move(members))});
    group.As<ListObject>().is_group = true;
    groups.push_back(group);
    begin = end;
  }
  return rt.List(std::move(groups));
}

constexpr FilterSpec kFilters[] = {
    {"dictsort", DictSort, "case_sensitive by reverse"},
    {"sort", Sort, "reverse case_sensitive attribute"},
    {"unique", Unique, "case_sensitive attribute"},
    {"min", Extreme<CompareOp::kLt>, "case_sensitive attribute"},
    {"max", Extreme<CompareOp::kGt>, "case_sensitive attribute"},
    {"groupby", GroupBy, "attribute default case_sensitive", 1},
};

}  // namespace

std::span<const FilterSpec> OrderFilters() { return kFilters; }

}  // namespace tq::jinja
