// The is...() methods of str.
#include "chat/template/methods.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

// True when there is a character and all of them pass.
template <bool (*Test)(char32_t)>
Result<Value> All(Runtime& rt, const Value& self, const Params&) {
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size() * 4));
  for (size_t i = 0; i < self.text().size();) {
    if (!Test(NextCodePoint(self.text(), &i))) return Value::Bool(false);
  }
  return Value::Bool(!self.text().empty());
}

// Cased characters exist, and all of them are of the wanted case.
template <bool (*Wanted)(char32_t), bool (*Unwanted)(char32_t)>
Result<Value> AllCased(Runtime& rt, const Value& self, const Params&) {
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size() * 4));
  bool found = false;
  for (size_t i = 0; i < self.text().size();) {
    const char32_t c = NextCodePoint(self.text(), &i);
    if (Unwanted(c) || IsTitleCase(c)) return Value::Bool(false);
    found = found || Wanted(c);
  }
  return Value::Bool(found);
}

Result<Value> IsTitle(Runtime&, const Value& self, const Params&) {
  bool in_word = false;
  bool found = false;
  for (size_t i = 0; i < self.text().size();) {
    const char32_t c = NextCodePoint(self.text(), &i);
    if (IsUpper(c) || IsTitleCase(c)) {
      if (in_word) return Value::Bool(false);
      in_word = found = true;
    } else if (IsLower(c)) {
      if (!in_word) return Value::Bool(false);
      found = true;
    } else {
      in_word = false;
    }
  }
  return Value::Bool(found);
}

Result<Value> IsIdentifier(Runtime&, const Value& self, const Params&) {
  for (size_t i = 0; i < self.text().size();) {
    const bool first = i == 0;
    const char32_t c = NextCodePoint(self.text(), &i);
    if (first ? !IsIdentifierStart(c) : !IsIdentifierPart(c)) return Value::Bool(false);
  }
  return Value::Bool(!self.text().empty());
}

Result<Value> IsAscii(Runtime&, const Value& self, const Params&) {
  return Value::Bool(self.As<StringObject>().length == self.text().size());
}

Result<Value> IsPrintableText(Runtime& rt, const Value& self, const Params& params) {
  if (self.text().empty()) return Value::Bool(true);
  return All<IsPrintable>(rt, self, params);
}

constexpr MethodSpec kTests[] = {
    {"isdigit", All<IsDigit>, ""},
    {"isdecimal", All<IsDecimal>, ""},
    {"isnumeric", All<IsNumeric>, ""},
    {"isalpha", All<IsAlpha>, ""},
    {"isalnum", All<IsAlnum>, ""},
    {"isspace", All<IsSpace>, ""},
    {"isprintable", IsPrintableText, ""},
    {"islower", AllCased<IsLower, IsUpper>, ""},
    {"isupper", AllCased<IsUpper, IsLower>, ""},
    {"istitle", IsTitle, ""},
    {"isidentifier", IsIdentifier, ""},
    {"isascii", IsAscii, ""},
};

}  // namespace

std::span<const MethodSpec> StringTests() { return kTests; }

}  // namespace tq::jinja
