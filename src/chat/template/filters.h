// The filters of `value | name(...)`.
#pragma once

#include <span>

#include "chat/template/params.h"
#include "chat/template/value.h"

namespace tq::jinja {

struct FilterSpec {
  std::string_view name;
  Result<Value> (*run)(Runtime& rt, const Value& value, const Params& params);
  std::string_view params;
  int required = 0;
};

// Null when `soft` and there is none. Errors: kUnsupported naming it; also for `random`, which
// would give another prompt each time.
Result<const FilterSpec*> FindFilter(std::string_view name, int line, bool soft);
Result<Value> RunFilter(Runtime& rt, const FilterSpec& filter, const Value& value,
                        const Args& args);

// The tables, by file.
std::span<const FilterSpec> TextFilters();
std::span<const FilterSpec> NumberFilters();
std::span<const FilterSpec> SequenceFilters();
std::span<const FilterSpec> OrderFilters();
std::span<const FilterSpec> StreamFilters();
std::span<const FilterSpec> LayoutFilters();
std::span<const FilterSpec> HtmlFilters();
std::span<const FilterSpec> LinkFilters();

// What attribute="a.b.0" of several filters reads: items by name or index.
class AttributePath {
 public:
  // path: None (the value itself), an integer, or a dotted text.
  static Result<AttributePath> Parse(Runtime& rt, const Value& path);
  // A replacement that is neither missing nor None stands in for undefined steps.
  Result<Value> Get(Runtime& rt, Value item, const Value& replacement = {}) const;

 private:
  std::vector<Value> parts_;
};

// Lower-cased when it is a text.
Value IgnoreCase(Runtime& rt, const Value& value);

}  // namespace tq::jinja
