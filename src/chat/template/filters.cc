#include "chat/template/filters.h"

#include "chat/template/numbers.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {

Result<const FilterSpec*> FindFilter(std::string_view name, int line, bool soft) {
  for (const std::span<const FilterSpec> table :
       {TextFilters(), NumberFilters(), SequenceFilters(), OrderFilters(), StreamFilters(),
        LayoutFilters(), HtmlFilters(), LinkFilters()}) {
    for (const FilterSpec& spec : table) {
      if (spec.name == name) return &spec;
    }
  }
  if (name == "random") {
    return Unsupported(fmt::format(
        "chat template line {}: the filter 'random' is not supported: a prompt has to be the same "
        "each time",
        line));
  }
  if (soft) return static_cast<const FilterSpec*>(nullptr);
  return Unsupported(
      fmt::format("chat template line {}: there is no filter named '{}'", line, name));
}

Result<Value> RunFilter(Runtime& rt, const FilterSpec& filter, const Value& value,
                        const Args& args) {
  TQ_RETURN_IF_ERROR(rt.Step());
  TQ_ASSIGN_OR_RETURN(const Params params,
                      Params::Bind(rt, filter.name, filter.params, filter.required, args));
  return filter.run(rt, value, params);
}

Result<AttributePath> AttributePath::Parse(Runtime& rt, const Value& path) {
  AttributePath result;
  if (path.IsMissing() || path.Is(Kind::kNone)) return result;
  if (!path.IsString()) {
    result.parts_.push_back(path);
    return result;
  }
  for (const std::string_view part : SplitOn(path.text(), ".", -1, /*from_right=*/false)) {
    int64_t index = 0;
    const bool is_index = !part.empty() &&
                          part.find_first_not_of("0123456789") == std::string_view::npos &&
                          ParseInt(part, 10, &index) == IntParse::kOk;
    result.parts_.push_back(is_index ? Value::Int(index) : rt.String(std::string(part)));
  }
  return result;
}

Result<Value> AttributePath::Get(Runtime& rt, Value item, const Value& replacement) const {
  for (const Value& part : parts_) {
    TQ_ASSIGN_OR_RETURN(item, GetItem(rt, item, part));
    if (item.IsUndefined() && !replacement.IsMissing() && !replacement.Is(Kind::kNone)) {
      item = replacement;
    }
  }
  return item;
}

Value IgnoreCase(Runtime& rt, const Value& value) {
  return value.IsString() ? TextLike(rt, value, ToLower(value.text())) : value;
}

}  // namespace tq::jinja
