// Filters over sequences and mappings.
#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

Result<Value> Default(Runtime& rt, const Value& v, const Params& p) {
  if (!v.IsUndefined() && (!p.Bool(1, false) || Truthy(v))) return v;
  return p.Has(0) ? p[0] : rt.String("");
}

Result<Value> LengthFilter(Runtime& rt, const Value& v, const Params&) {
  TQ_ASSIGN_OR_RETURN(const int64_t length, Length(rt, v));
  return Value::Int(length);
}

Result<Value> ListFilter(Runtime& rt, const Value& v, const Params&) {
  if (v.Is(Kind::kList)) return v;  // lists never change, so no copy is needed
  TQ_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(rt, v));
  return rt.List(std::move(items));
}

// An item as iteration gives it: the characters of safe text are ordinary text.
Result<Value> ItemAt(Runtime& rt, const Value& v, int64_t index) {
  TQ_ASSIGN_OR_RETURN(const Value item, GetItem(rt, v, Value::Int(index)));
  return item.IsString() ? rt.String(std::string(item.text())) : item;
}

Result<Value> First(Runtime& rt, const Value& v, const Params&) {
  if (v.Is(Kind::kGenerator)) {
    auto& generator = v.As<GeneratorObject>();
    TQ_RETURN_IF_ERROR(FillGenerator(rt, generator));
    if (generator.position < generator.items.size()) return generator.items[generator.position++];
    return rt.Undefined("No first item, sequence was empty.");
  }
  if (v.IsString() || v.Is(Kind::kRange)) {
    TQ_ASSIGN_OR_RETURN(const int64_t length, Length(rt, v));
    if (length > 0) return ItemAt(rt, v, 0);
  }
  TQ_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(rt, v));
  if (items.empty()) return rt.Undefined("No first item, sequence was empty.");
  return std::move(items.front());
}

// What Python's reversed() accepts.
bool IsReversible(const Value& v) {
  return IsIterable(v) && !v.Is(Kind::kGenerator) && !v.Is(Kind::kLoop);
}

Result<Value> Last(Runtime& rt, const Value& v, const Params&) {
  if (!IsReversible(v)) return rt.Fail("'{}' object is not reversible", TypeName(v));
  TQ_ASSIGN_OR_RETURN(const int64_t length, Length(rt, v));
  if (length == 0) return rt.Undefined("No last item, sequence was empty.");
  if (v.IsString() || v.Is(Kind::kRange)) return ItemAt(rt, v, -1);
  TQ_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(rt, v));
  return std::move(items.back());
}

Result<Value> Reverse(Runtime& rt, const Value& v, const Params&) {
  if (v.IsString()) return Slice(rt, v, Value(), Value(), Value::Int(-1));
  if (!IsIterable(v)) return rt.Fail("argument must be iterable");
  TQ_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(rt, v));
  std::reverse(items.begin(), items.end());
  if (!IsReversible(v)) return rt.List(std::move(items));
  const Value list = rt.List(std::move(items));
  return rt.Generator(list.depth(), [list](Runtime&, std::vector<Value>* out) {
    *out = list.items();
    return Status::Ok();
  });
}

Result<Value> Join(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, v));
  const bool by_attribute = p.HasValue(1);
  TQ_ASSIGN_OR_RETURN(const AttributePath path, AttributePath::Parse(rt, p[1]));
  std::string separator;
  if (p.Has(0)) {
    TQ_ASSIGN_OR_RETURN(separator, Str(rt, p[0]));
  }
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (by_attribute) {
      TQ_ASSIGN_OR_RETURN(item, path.Get(rt, std::move(item)));
    }
    TQ_ASSIGN_OR_RETURN(const std::string text, Str(rt, item));
    if (i > 0) out += separator;
    out += text;
    TQ_RETURN_IF_ERROR(rt.CheckBytes(out.size()));
    TQ_RETURN_IF_ERROR(rt.StepBytes(text.size()));
  }
  return rt.String(std::move(out));
}

Result<Value> Items(Runtime& rt, const Value& v, const Params&) {
  return rt.Generator(v.depth(), [v](Runtime& inner, std::vector<Value>* out) -> Status {
    if (v.IsUndefined()) return Status::Ok();
    if (!v.Is(Kind::kDict)) return inner.Fail("can only get item pairs from a mapping");
    for (const auto& [key, value] : v.dict().entries) out->push_back(inner.Tuple({key, value}));
    return Status::Ok();
  });
}

Result<Value> Attr(Runtime& rt, const Value& v, const Params& p) {
  if (v.IsUndefined()) return rt.FailUndefined(v);
  if (!p[0].IsString()) return rt.Fail("attribute name must be string, not '{}'", TypeName(p[0]));
  TQ_ASSIGN_OR_RETURN(const Value found, FindAttribute(rt, v, p[0].text()));
  return found.IsMissing() ? rt.UndefinedMember(v, p[0]) : found;
}

Result<Value> Batch(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const int64_t size, p.Int(rt, 0, 0));
  const Value fill = p.HasValue(1) ? p[1] : Value();
  return rt.Generator(std::max(v.depth(), fill.depth()) + 1,
                      [v, size, fill](Runtime& inner, std::vector<Value>* out) -> Status {
                        TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(inner, v));
                        std::vector<Value> row;
                        for (const Value& item : items) {
                          if (static_cast<int64_t>(row.size()) == size) {
                            out->push_back(inner.List(std::move(row)));
                            row.clear();
                          }
                          row.push_back(item);
                        }
                        if (row.empty()) return Status::Ok();
                        if (!fill.IsMissing() && static_cast<int64_t>(row.size()) < size) {
                          TQ_RETURN_IF_ERROR(inner.CheckItems(static_cast<size_t>(size)));
                          row.resize(static_cast<size_t>(size), fill);
                        }
                        out->push_back(inner.List(std::move(row)));
                        return Status::Ok();
                      });
}

Result<Value> SliceFilter(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const int64_t slices, p.Int(rt, 0, 0));
  const Value fill = p.HasValue(1) ? p[1] : Value();
  return rt.Generator(std::max(v.depth(), fill.depth()) + 1,
                      [v, slices, fill](Runtime& inner, std::vector<Value>* out) -> Status {
                        TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(inner, v));
                        if (slices == 0) return inner.Fail("integer division or modulo by zero");
                        if (slices < 0) return Status::Ok();
                        TQ_RETURN_IF_ERROR(inner.CheckItems(static_cast<size_t>(slices)));
                        const auto length = static_cast<int64_t>(items.size());
                        const int64_t per_slice = length / slices;
                        const int64_t with_extra = length % slices;
                        int64_t offset = 0;
                        for (int64_t i = 0; i < slices; ++i) {
                          TQ_RETURN_IF_ERROR(inner.Step());
                          const int64_t begin = offset + i * per_slice;
                          if (i < with_extra) ++offset;
                          const int64_t end = offset + (i + 1) * per_slice;
                          std::vector<Value> row(items.begin() + begin, items.begin() + end);
                          if (!fill.IsMissing() && i >= with_extra) row.push_back(fill);
                          out->push_back(inner.List(std::move(row)));
                        }
                        return Status::Ok();
                      });
}

constexpr FilterSpec kFilters[] = {
    {"default", Default, "default_value boolean"},
    {"d", Default, "default_value boolean"},
    {"length", LengthFilter, ""},
    {"count", LengthFilter, ""},
    {"list", ListFilter, ""},
    {"first", First, ""},
    {"last", Last, ""},
    {"reverse", Reverse, ""},
    {"join", Join, "d attribute"},
    {"items", Items, ""},
    {"attr", Attr, "name", 1},
    {"batch", Batch, "linecount fill_with", 1},
    {"slice", SliceFilter, "slices fill_with", 1},
};

}  // namespace

std::span<const FilterSpec> SequenceFilters() { return kFilters; }

}  // namespace tq::jinja
