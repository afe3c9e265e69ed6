// Escapes in string literals.
#pragma once

#include <string>
#include <string_view>

namespace tq::jinja {

// Python's escapes; an unknown one keeps its backslash. False: *error says what is wrong.
bool UnescapeString(std::string_view body, std::string* out, std::string* error);

}  // namespace tq::jinja
