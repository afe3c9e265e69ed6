// config.json: any bytes give a spec or a Status, within bounded time and memory.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = tq::ParseJson({reinterpret_cast<const char*>(data), size}, "config.json");
  if (!config.ok()) return 0;
  const auto spec = tq::ParseModelSpec(*config, {.has_lm_head = true});
  if (spec.ok()) (void)tq::NeededTensors(*spec);
  return 0;
}
