// Arguments of built-in filters, tests, methods and functions, matched to parameter names.
#pragma once

#include "chat/template/value.h"

namespace tq::jinja {

class Params {
 public:
  // names: "width first blank"; the first `required` must be given. "*" takes everything as it is.
  // Errors: too many, unknown or missing arguments, naming the function.
  static Result<Params> Bind(Runtime& rt, std::string_view function, std::string_view names,
                             int required, const Args& args);

  bool Has(size_t i) const { return i < values_.size() && !values_[i].IsMissing(); }
  // kMissing when it was not given.
  const Value& operator[](size_t i) const { return values_[i]; }
  const Args& raw() const { return *raw_; }

  Result<int64_t> Int(Runtime& rt, size_t i, int64_t otherwise) const;
  bool Bool(size_t i, bool otherwise) const;
  // A str. Errors: another type.
  Result<std::string> Text(Runtime& rt, size_t i, std::string_view otherwise) const;
  bool HasValue(size_t i) const { return Has(i) && !values_[i].Is(Kind::kNone); }

 private:
  const Args* raw_ = nullptr;
  std::vector<Value> values_;
};

}  // namespace tq::jinja
