// Lookups in JSON of unknown shape that never fail.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {

// A member of an object, or null.
inline const Json& Member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found != object.end() ? *found : kNull;
}

inline std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline bool IsTrue(const Json& value) { return value.is_boolean() && value.get<bool>(); }

}  // namespace tq
