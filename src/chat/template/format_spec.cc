#include "chat/template/format_spec.h"

#include <cmath>

#include "chat/template/numbers.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Digits in groups of three (four for binary, octal and hexadecimal).
std::string Group(std::string_view digits, char separator, size_t size) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

Status ReadNumber(Runtime& rt, std::string_view text, size_t* at, int64_t* number) {
  *number = 0;
  while (*at < text.size() && text[*at] >= '0' && text[*at] <= '9') {
    *number = *number * 10 + (text[(*at)++] - '0');
    if (*number > int64_t{1} << 40) return rt.Fail("a width or precision of a format is too large");
  }
  return Status::Ok();
}

}  // namespace

Result<FormatSpec> ParseFormatSpec(Runtime& rt, std::string_view text) {
  FormatSpec spec;
  size_t at = 0;
  if (!text.empty()) {
    size_t after_fill = 0;
    NextCodePoint(text, &after_fill);
    if (after_fill < text.size() && IsAlign(text[after_fill])) {
      spec.fill = std::string(text.substr(0, after_fill));
      spec.align = text[after_fill];
      at = after_fill + 1;
    } else if (IsAlign(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  const auto take = [&](char c) {
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  for (const char sign : {'+', '-', ' '}) {
    if (take(sign)) {
      spec.sign = sign;
      break;
    }
  }
  if (take('#')) spec.alternate = true;
  if (take('0') && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  }
  TQ_RETURN_IF_ERROR(ReadNumber(rt, text, &at, &spec.width));
  if (take(',')) spec.grouping = ',';
  if (take('_')) spec.grouping = '_';
  if (take('.')) {
    const size_t begin = at;
    TQ_RETURN_IF_ERROR(ReadNumber(rt, text, &at, &spec.precision));
    if (at == begin) return rt.Fail("format specifier without a precision");
  }
  if (at + 1 == text.size()) spec.type = text[at++];
  if (at != text.size()) return rt.Fail("malformed format specifier '{}'", text);
  return spec;
}

Result<std::string> PadField(Runtime& rt, std::string body, size_t sign_length,
                             const FormatSpec& spec, char default_align) {
  const auto length = static_cast<int64_t>(CodePointCount(body));
  if (spec.width <= length) return body;
  const int64_t missing = spec.width - length;
  TQ_RETURN_IF_ERROR(rt.CheckBytes(static_cast<size_t>(missing) * spec.fill.size()));
  const char align = spec.align == 0 ? default_align : spec.align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out = align == '=' ? body.substr(0, sign_length) : std::string();
  for (int64_t i = 0; i < left; ++i) out += spec.fill;
  out += align == '=' ? body.substr(sign_length) : body;
  for (int64_t i = left; i < missing; ++i) out += spec.fill;
  return out;
}

Result<std::string> FormatNumber(Runtime& rt, const Value& value, const FormatSpec& spec) {
  std::string digits;
  std::string prefix;
  bool negative = false;
  size_t group_size = 3;
  const char type = spec.type;
  const bool float_type = type != 0 && std::string_view("eEfFgG%").find(type) != std::string::npos;
  if (value.Is(Kind::kFloat) || float_type) {
    double number = value.AsDouble();
    negative = std::signbit(number) && !std::isnan(number);
    number = std::fabs(number);
    if (spec.precision > kMaxPrecision) return rt.Fail("the precision of a format is too large");
    const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    if (type == 0 || type == 'n') {
      if (spec.precision < 0) {
        digits = FloatRepr(number);
      } else {
        digits = FormatFloat(number, 'g', precision);
        if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
      }
    } else if (type == '%') {
      digits = FormatFloat(number * 100, 'f', precision) + "%";
    } else if (float_type) {
      digits = FormatFloat(number, type, precision);
    } else {
      return rt.Fail("unknown format code '{}' for an object of type 'float'", type);
    }
    if (spec.grouping != 0) {
      const size_t whole = digits.find_first_not_of("0123456789");
      const size_t end = whole == std::string::npos ? digits.size() : whole;
      digits =
          Group(std::string_view(digits).substr(0, end), spec.grouping, 3) + digits.substr(end);
    }
  } else {
    uint64_t magnitude = value.big_integer();
    if (!value.Is(Kind::kBigInt)) {
      negative = value.integer() < 0;
      magnitude = Magnitude(value.integer());
    }
    int base = 10;
    switch (type) {
      case 0:
      case 'd':
      case 'n':
        break;
      case 'x':
      case 'X':
        base = 16;
        break;
      case 'o':
        base = 8;
        break;
      case 'b':
        base = 2;
        break;
      case 'c': {
        if (negative || magnitude > 0x10FFFF || (magnitude >= 0xD800 && magnitude < 0xE000)) {
          return rt.Fail("{} is not a character", value.integer());
        }
        AppendCodePoint(&digits, static_cast<char32_t>(magnitude));
        return PadField(rt, std::move(digits), 0, spec, '<');
      }
      default:
        return rt.Fail("unknown format code '{}' for an object of type 'int'", type);
    }
    digits = DigitsOf(magnitude, base, type == 'X');
    if (base != 10) group_size = 4;
    if (spec.grouping != 0) digits = Group(digits, spec.grouping, group_size);
    if (spec.alternate && base != 10) prefix = std::string("0") + type;
  }
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const size_t sign_length = sign.size() + prefix.size();
  return PadField(rt, sign + prefix + digits, sign_length, spec, '>');
}

Result<std::string> FormatValue(Runtime& rt, const Value& value, const FormatSpec& spec) {
  if (value.IsNumber() &&
      !(value.Is(Kind::kBool) && spec.type == 0 && spec.width == 0 && spec.align == 0)) {
    return FormatNumber(rt, value, spec);
  }
  const bool plain = spec.width == 0 && spec.align == 0 && spec.precision < 0 && spec.type == 0;
  if (!value.IsString() && !value.Is(Kind::kBool) && !plain) {
    return rt.Fail("a value of type {} cannot be formatted with a width or type", TypeName(value));
  }
  if (spec.type != 0 && spec.type != 's') {
    return rt.Fail("unknown format code '{}' for an object of type 'str'", spec.type);
  }
  TQ_ASSIGN_OR_RETURN(std::string text, Str(rt, value));
  if (spec.precision >= 0) text.resize(ByteOffset(text, static_cast<size_t>(spec.precision)));
  if (spec.align == '=') return rt.Fail("'=' alignment not allowed in a string format specifier");
  return PadField(rt, std::move(text), 0, spec, '<');
}

}  // namespace tq::jinja
