// "..." % arguments
#include <cmath>

#include "chat/template/format_spec.h"
#include "chat/template/numbers.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Runtime& rt, const Value& format, const Value& arguments)
      : rt_(rt), text_(format.text()), markup_(format.As<StringObject>().markup) {
    if (arguments.Is(Kind::kTuple)) {
      values_ = arguments.items();
    } else {
      values_ = {arguments};
      // Anything with items may be left unused, as Python allows for mappings.
      mapping_ = arguments.Is(Kind::kDict) || arguments.Is(Kind::kList) ||
                 arguments.Is(Kind::kRange) || arguments.IsUndefined();
      if (arguments.Is(Kind::kDict)) dict_ = &arguments.dict();
    }
  }

  Result<std::string> Run() {
    while (at_ < text_.size()) {
      const size_t percent = text_.find('%', at_);
      out_ += text_.substr(at_, percent - at_);
      if (percent == std::string_view::npos) break;
      at_ = percent + 1;
      TQ_RETURN_IF_ERROR(Field());
      TQ_RETURN_IF_ERROR(rt_.CheckBytes(out_.size()));
      TQ_RETURN_IF_ERROR(rt_.Step());
    }
    if (next_ < values_.size() && !mapping_) {
      return rt_.Fail("not all arguments converted during string formatting");
    }
    return std::move(out_);
  }

 private:
  Result<Value> NextValue() {
    if (next_ >= values_.size()) return rt_.Fail("not enough arguments for format string");
    return values_[next_++];
  }

  char Current() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Digits, or '*' for a value.
  Status Number(int64_t* number) {
    if (Current() == '*') {
      ++at_;
      TQ_ASSIGN_OR_RETURN(const Value value, NextValue());
      if (!value.IsIntegral()) return rt_.Fail("* wants int");
      *number = value.integer();
      return Status::Ok();
    }
    *number = 0;
    while (Current() >= '0' && Current() <= '9') {
      *number = *number * 10 + (text_[at_++] - '0');
      if (*number > int64_t{1} << 40) {
        return rt_.Fail("a width or precision of a format is too large");
      }
    }
    return Status::Ok();
  }

  Status Field() {
    Value value;
    if (Current() == '(') {
      const size_t close = text_.find(')', at_);
      if (dict_ == nullptr) return rt_.Fail("format requires a mapping");
      if (close == std::string_view::npos) return rt_.Fail("incomplete format key");
      const std::string_view key = text_.substr(at_ + 1, close - at_ - 1);
      const Value* found = dict_->Find(key);
      if (found == nullptr) return rt_.Fail("the format's key '{}' is missing", key);
      value = *found;
      at_ = close + 1;
    }
    FormatSpec spec;
    bool left = false;
    bool zero = false;
    for (;; ++at_) {
      const char flag = Current();
      if (flag == '-') {
        left = true;
      } else if (flag == '0') {
        zero = true;
      } else if (flag == '+') {
        spec.sign = '+';
      } else if (flag == ' ') {
        if (spec.sign != '+') spec.sign = ' ';
      } else if (flag == '#') {
        spec.alternate = true;
      } else {
        break;
      }
    }
    TQ_RETURN_IF_ERROR(Number(&spec.width));
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (Current() == '.') {
      ++at_;
      TQ_RETURN_IF_ERROR(Number(&spec.precision));
      if (spec.precision < 0) spec.precision = 0;
    }
    while (Current() == 'h' || Current() == 'l' || Current() == 'L') ++at_;
    if (at_ >= text_.size()) return rt_.Fail("incomplete format");
    const char type = text_[at_++];
    if (type == '%') {
      out_ += '%';
      return Status::Ok();
    }
    if (value.IsMissing()) {
      TQ_ASSIGN_OR_RETURN(value, NextValue());
    }
    spec.align = left ? '<' : '>';
    if (type == 's' || type == 'r' || type == 'a') return TextField(value, type, spec);
    if (zero && !left) {
      spec.fill = "0";
      spec.align = '=';
    }
    return NumberField(value, type, spec);
  }

  Status TextField(const Value& value, char type, const FormatSpec& spec) {
    std::string text;
    if (markup_ && type == 's') {
      TQ_ASSIGN_OR_RETURN(const Value escaped, Escaped(rt_, value));
      text = std::string(escaped.text());
    } else {
      TQ_ASSIGN_OR_RETURN(text, type == 's' ? Str(rt_, value) : Repr(rt_, value));
      if (type == 'a' && value.IsString()) text = ReprText(value.text(), /*ascii_only=*/true);
      if (markup_) text = EscapeHtml(text);
    }
    if (spec.precision >= 0) text.resize(ByteOffset(text, static_cast<size_t>(spec.precision)));
    TQ_ASSIGN_OR_RETURN(const std::string field, PadField(rt_, std::move(text), 0, spec, '>'));
    out_ += field;
    return Status::Ok();
  }

  Status NumberField(const Value& value, char type, FormatSpec spec) {
    if (value.IsUndefined()) return rt_.FailUndefined(value);
    if (type == 'c' && value.IsString() && value.As<StringObject>().length == 1) {
      return TextField(value, 's', spec);
    }
    if (std::string_view("diuoxXeEfFgGc").find(type) == std::string_view::npos) {
      return rt_.Fail("unsupported format character '{}'", type);
    }
    if (!value.IsNumber()) {
      return rt_.Fail("%{} format: a real number is required, not {}", type, TypeName(value));
    }
    Value number = value;
    if (type == 'i' || type == 'u') type = 'd';
    if (type == 'd' && value.Is(Kind::kFloat)) {
      if (!(std::fabs(value.real()) < 9.2e18)) {
        return rt_.Fail("the float {} does not fit a 64-bit integer", FloatRepr(value.real()));
      }
      number = Value::Int(static_cast<int64_t>(value.real()));
    } else if (value.Is(Kind::kFloat) &&
               std::string_view("oxXc").find(type) != std::string_view::npos) {
      return rt_.Fail("%{} format: an integer is required, not float", type);
    }
    spec.type = type;
    const bool is_integer = std::string_view("doxX").find(type) != std::string_view::npos;
    if (is_integer && spec.precision > 0) return IntegerWithPrecision(number, spec);
    TQ_ASSIGN_OR_RETURN(const std::string field, FormatNumber(rt_, number, spec));
    out_ += field;
    return Status::Ok();
  }

  // The precision of an integer is its least number of digits.
  Status IntegerWithPrecision(const Value& number, FormatSpec spec) {
    FormatSpec bare;
    bare.type = spec.type;
    const bool negative = number.Is(Kind::kInt) && number.integer() < 0;
    TQ_ASSIGN_OR_RETURN(std::string digits, FormatNumber(rt_, number, bare));
    if (negative) digits.erase(0, 1);
    const auto wanted = static_cast<size_t>(spec.precision);
    TQ_RETURN_IF_ERROR(rt_.CheckBytes(wanted));
    if (digits.size() < wanted) digits.insert(0, wanted - digits.size(), '0');
    std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
    if (spec.alternate && spec.type != 'd') sign += std::string("0") + spec.type;
    const size_t sign_length = sign.size();
    TQ_ASSIGN_OR_RETURN(const std::string field,
                        PadField(rt_, sign + digits, sign_length, spec, '>'));
    out_ += field;
    return Status::Ok();
  }

  Runtime& rt_;
  std::string_view text_;
  bool markup_;
  std::vector<Value> values_;
  const DictObject* dict_ = nullptr;
  bool mapping_ = false;
  size_t next_ = 0;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<Value> FormatPercent(Runtime& rt, const Value& format, const Value& arguments) {
  PercentFormatter formatter(rt, format, arguments);
  TQ_ASSIGN_OR_RETURN(std::string text, formatter.Run());
  return TextLike(rt, format, std::move(text));
}

}  // namespace tq::jinja
