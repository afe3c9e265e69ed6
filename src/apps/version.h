// turboquant --version.
#pragma once

#include "base/status.h"

namespace tq {

Status PrintVersion(bool json);

}  // namespace tq
