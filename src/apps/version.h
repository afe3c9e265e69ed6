// turboquant --version.
#pragma once

#include <string>

#include "base/status.h"

namespace tq {

// "0.9.0, Release, gcc 12.2.0"
std::string BuildText();

Status PrintVersion(bool json);

}  // namespace tq
