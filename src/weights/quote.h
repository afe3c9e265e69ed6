// Names out of a file, made fit for a one-line message.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {

// "name" with JSON escapes; bytes that are no UTF-8 become U+FFFD, long names are cut.
inline std::string Quoted(std::string_view name) {
  constexpr size_t kMaxBytes = 160;
  const Json text = std::string(name.substr(0, kMaxBytes));
  return text.dump(-1, ' ', false, Json::error_handler_t::replace) +
         (name.size() > kMaxBytes ? "..." : "");
}

}  // namespace tq
