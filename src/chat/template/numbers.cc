#include "chat/template/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "chat/template/text.h"

namespace tq::jinja {
namespace {

std::string ToChars(double value, std::chars_format format, int precision) {
  std::string out(static_cast<size_t>(precision) + 400, '\0');
  const std::to_chars_result result =
      std::to_chars(out.data(), out.data() + out.size(), value, format, precision);
  out.resize(static_cast<size_t>(result.ptr - out.data()));
  return out;
}

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

}  // namespace

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const std::to_chars_result result =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  const size_t e = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  int exponent = 0;
  const char* exponent_begin = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_begin, text.data() + text.size(), exponent);
  std::string out = text[0] == '-' ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += '.' + digits.substr(1);
    const std::string magnitude = std::to_string(std::abs(exponent));
    out += exponent < 0 ? "e-" : "e+";
    if (magnitude.size() < 2) out += '0';
    return out + magnitude;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + '.' + digits.substr(whole);
}

double RoundFloat(double value, int digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    const std::string text = ToChars(value, std::chars_format::fixed, digits);
    double rounded = value;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    return rounded;
  }
  // Round the exact integer digits by hand.
  std::string text = ToChars(std::fabs(value), std::chars_format::fixed, 0);
  const bool has_fraction = std::fabs(value) != std::trunc(std::fabs(value));
  if (has_fraction) text = ToChars(std::trunc(std::fabs(value)), std::chars_format::fixed, 0);
  const auto drop = static_cast<size_t>(-digits);
  if (text.size() < drop) return std::copysign(0.0, value);
  std::string kept = text.substr(0, text.size() - drop);
  const std::string tail = text.substr(text.size() - drop);
  const std::string half = '5' + std::string(drop - 1, '0');
  const bool odd = !kept.empty() && (kept.back() - '0') % 2 == 1;
  if (tail > half || (tail == half && (has_fraction || odd))) {
    size_t i = kept.size();
    while (i > 0 && kept[i - 1] == '9') kept[--i] = '0';
    if (i > 0) {
      ++kept[i - 1];
    } else {
      kept.insert(kept.begin(), '1');
    }
  }
  kept += std::string(drop, '0');
  double rounded = 0;
  std::from_chars(kept.data(), kept.data() + kept.size(), rounded);
  return std::copysign(rounded, value);
}

std::string FormatFloat(double value, char type, int precision) {
  std::string out;
  if (!std::isfinite(value)) {
    out = FloatRepr(value);
  } else if (type == 'e' || type == 'E') {
    out = ToChars(value, std::chars_format::scientific, precision);
  } else if (type == 'g' || type == 'G') {
    out = ToChars(value, std::chars_format::general, std::max(precision, 1));
  } else {
    out = ToChars(value, std::chars_format::fixed, precision);
  }
  if (type >= 'A' && type <= 'Z') out = ToUpper(out);
  return out;
}

IntParse ParseInt(std::string_view text, int base, int64_t* value) {
  text = Strip(text, Side::kBoth, std::nullopt);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.size() > 1 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int prefix_base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
      base = prefix_base;
      text.remove_prefix(2);
      if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    } else if (base == 0 && text.find_first_not_of("0_") != std::string_view::npos) {
      return IntParse::kMalformed;  // 007 is not a number in Python
    }
  }
  if (base == 0) base = 10;
  bool overflow = false;
  bool digit_before = false;
  uint64_t magnitude = 0;
  const uint64_t limit = (uint64_t{1} << 63) - (negative ? 0 : 1);
  for (const char c : text) {
    if (c == '_' && digit_before) {
      digit_before = false;
      continue;
    }
    const int digit = DigitValue(c);
    if (digit >= base) return IntParse::kMalformed;
    digit_before = true;
    const auto wide_base = static_cast<uint64_t>(base);
    if (overflow || magnitude > (limit - static_cast<uint64_t>(digit)) / wide_base) {
      overflow = true;
    } else {
      magnitude = magnitude * wide_base + static_cast<uint64_t>(digit);
    }
  }
  if (!digit_before) return IntParse::kMalformed;
  if (overflow) return IntParse::kOverflow;
  *value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return IntParse::kOk;
}

std::optional<double> ParseFloat(std::string_view text) {
  text = Strip(text, Side::kBoth, std::nullopt);
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      const bool between = i > 0 && i + 1 < text.size() && DigitValue(text[i - 1]) < 10 &&
                           DigitValue(text[i + 1]) < 10;
      if (!between) return std::nullopt;
      continue;
    }
    clean += text[i];
  }
  std::string_view rest = clean;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  std::optional<double> result;
  const std::string lower = ToLower(rest);
  if (lower == "inf" || lower == "infinity") {
    result = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    result = std::numeric_limits<double>::quiet_NaN();
  } else if (!rest.empty() && (DigitValue(rest[0]) < 10 || rest[0] == '.')) {
    double value = 0;
    const std::from_chars_result parsed =
        std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (parsed.ptr != rest.data() + rest.size()) return std::nullopt;
    if (parsed.ec == std::errc::result_out_of_range) {
      // Python gives inf or 0; the sign of the exponent decides.
      const size_t e = rest.find_first_of("eE");
      const bool tiny = e != std::string_view::npos && e + 1 < rest.size() && rest[e + 1] == '-';
      value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    } else if (parsed.ec != std::errc()) {
      return std::nullopt;
    }
    result = value;
  }
  if (result && negative) result = -*result;
  return result;
}

std::string DigitsOf(uint64_t magnitude, int base, bool upper) {
  char buffer[72];
  const std::to_chars_result result =
      std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base);
  std::string out(buffer, static_cast<size_t>(result.ptr - buffer));
  return upper ? ToUpper(out) : out;
}

}  // namespace tq::jinja
