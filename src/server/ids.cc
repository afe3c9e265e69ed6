#include "server/ids.h"

#include <fmt/format.h>

#include "sampling/random.h"

namespace tq::server {

std::string NewId(std::string_view prefix) {
  return fmt::format("{}{:016x}{:016x}", prefix, FreshSeed(), FreshSeed());
}

}  // namespace tq::server
