// Numbers as text and text as numbers, with Python's spelling. Locale-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tq::jinja {

// repr(float): the shortest text that reads back, "1.0", "1e+16", "nan".
std::string FloatRepr(double value);
// round(value, digits), half to even on the exact binary value.
double RoundFloat(double value, int digits);
// printf's e, E, f, F, g, G. Requires: 0 <= precision <= kMaxPrecision.
inline constexpr int64_t kMaxPrecision = 1000;
std::string FormatFloat(double value, char type, int precision);

enum class IntParse { kOk, kMalformed, kOverflow };
// int(text, base): white space, sign, prefix, single underscores. base 0 or 2..36.
IntParse ParseInt(std::string_view text, int base, int64_t* value);
// float(text), also "inf", "nan", "1_000.5".
std::optional<double> ParseFloat(std::string_view text);

// Digits of a magnitude in base 2, 8, 10 or 16.
std::string DigitsOf(uint64_t magnitude, int base, bool upper);
inline uint64_t Magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

}  // namespace tq::jinja
