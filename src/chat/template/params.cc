#include "chat/template/params.h"

#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {

Result<Params> Params::Bind(Runtime& rt, std::string_view function, std::string_view names,
                            int required, const Args& args) {
  Params params;
  params.raw_ = &args;
  if (names == "*") return params;
  std::vector<std::string_view> list;
  if (!names.empty()) list = SplitOn(names, " ", -1, /*from_right=*/false);
  if (args.positional.size() > list.size()) {
    return rt.Fail("{}() takes at most {} arguments, {} were given", function, list.size(),
                   args.positional.size());
  }
  params.values_ = args.positional;
  params.values_.resize(list.size());
  for (const auto& [name, value] : args.named) {
    const auto it = std::find(list.begin(), list.end(), name);
    if (it == list.end()) return rt.Fail("{}() has no argument named '{}'", function, name);
    Value& place = params.values_[static_cast<size_t>(it - list.begin())];
    if (!place.IsMissing()) return rt.Fail("{}() got two values for '{}'", function, name);
    place = value;
  }
  for (int i = 0; i < required; ++i) {
    if (!params.Has(static_cast<size_t>(i))) {
      return rt.Fail("{}() needs the argument '{}'", function, list[static_cast<size_t>(i)]);
    }
  }
  return params;
}

Result<int64_t> Params::Int(Runtime& rt, size_t i, int64_t otherwise) const {
  return Has(i) ? ToIndex(rt, values_[i]) : otherwise;
}

bool Params::Bool(size_t i, bool otherwise) const {
  return Has(i) ? Truthy(values_[i]) : otherwise;
}

Result<std::string> Params::Text(Runtime& rt, size_t i, std::string_view otherwise) const {
  if (!Has(i)) return std::string(otherwise);
  if (values_[i].IsUndefined()) return rt.FailUndefined(values_[i]);
  if (!values_[i].IsString()) return rt.Fail("expected a str, found {}", TypeName(values_[i]));
  return std::string(values_[i].text());
}

}  // namespace tq::jinja
