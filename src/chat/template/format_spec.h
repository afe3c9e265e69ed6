// One field of a format: padding, sign, precision, for '%' and for str.format.
#pragma once

#include "chat/template/value.h"

namespace tq::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;          // '<', '>', '^', '='; 0: the type's own
  char sign = '-';         // '-', '+', ' '
  bool alternate = false;  // '#'
  char grouping = 0;       // ',' or '_'
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

// "*>+10,.2f"
Result<FormatSpec> ParseFormatSpec(Runtime& rt, std::string_view text);
// A number with the spec's type (0 behaves as str.format does without one).
Result<std::string> FormatNumber(Runtime& rt, const Value& value, const FormatSpec& spec);
// format(value, spec)
Result<std::string> FormatValue(Runtime& rt, const Value& value, const FormatSpec& spec);
// body padded to the width; sign_length leading characters stay in front of '=' padding.
Result<std::string> PadField(Runtime& rt, std::string body, size_t sign_length,
                             const FormatSpec& spec, char default_align);

}  // namespace tq::jinja
