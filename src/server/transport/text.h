// Small things about texts of HTTP.
#pragma once

#include <string>
#include <string_view>

namespace tq::server {

// ASCII only.
bool EqualsIgnoringCase(std::string_view a, std::string_view b);
// %41 -> A; what is no escape stays as it is.
std::string PercentDecode(std::string_view text);
// The value of a name in a query, "" when it is not there.
std::string QueryValue(std::string_view query, std::string_view name);

}  // namespace tq::server
