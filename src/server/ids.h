// Names that nobody can guess: of answers, requests, calls.
#pragma once

#include <string>
#include <string_view>

namespace tq::server {

// prefix and 32 hexadecimal digits. Any thread.
std::string NewId(std::string_view prefix);

}  // namespace tq::server
