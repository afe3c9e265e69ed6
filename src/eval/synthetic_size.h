// What a synthetic model takes in memory, known before it is made, so that one that does not fit is
// refused and not killed.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/synthetic_source.h"

namespace tq {

struct SyntheticSize {
  int64_t source_bytes = 0;          // random values, given back after the load
  int64_t shared_bytes = 0;          // embedding and head, prepared
  std::vector<int64_t> layer_bytes;  // weights of each layer, prepared
  std::vector<int64_t> cache_bytes;  // of each layer
  int64_t weight_bytes() const;      // all layers
};

// The cache of `slots` sequences with `pages` pages together.
SyntheticSize MeasureSynthetic(const SyntheticModel& model, const KvSettings& kv, int64_t pages,
                               int64_t slots);

// Errors: kOutOfMemory when more than `available` bytes would be in use at a time, naming how many
// layers fit.
Status CheckSyntheticFits(const SyntheticModel& model, const SyntheticSize& size,
                          int64_t available);

}  // namespace tq
