#include "sampling/random.h"

#include <random>

namespace tq {

uint64_t FreshSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace tq
