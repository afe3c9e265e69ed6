// What the sampler's tests share.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sampling/sampler.h"

namespace tq {

inline SampledToken SampleToken(const SamplingParams& params, std::vector<float> logits,
                                const SamplerCall& call = {}) {
  SamplerScratch scratch;
  return Sampler(params).Sample(logits, call, scratch);
}

inline int32_t SampleOnce(const SamplingParams& params, std::vector<float> logits,
                          const SamplerCall& call = {}) {
  return SampleToken(params, std::move(logits), call).id;
}

// The logits after bias and penalties.
inline std::vector<float> Changed(const SamplingParams& params, std::vector<float> logits,
                                  const SamplerCall& call) {
  SamplerScratch scratch;
  Sampler(params).Sample(logits, call, scratch);
  return logits;
}

// Counts of each id over `draws` positions.
inline std::map<int32_t, int> Histogram(const SamplingParams& params,
                                        const std::vector<float>& logits, int draws) {
  const Sampler sampler(params);
  SamplerScratch scratch;
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    std::vector<float> copy = logits;
    SamplerCall call;
    call.position = i;
    ++counts[sampler.Sample(copy, call, scratch).id];
  }
  return counts;
}

inline std::set<int32_t> Drawn(const SamplingParams& params, const std::vector<float>& logits,
                               int draws = 3000) {
  std::set<int32_t> ids;
  for (const auto& [id, count] : Histogram(params, logits, draws)) ids.insert(id);
  return ids;
}

inline SamplingParams Hot() {
  SamplingParams params;
  params.temperature = 1.0f;
  params.seed = 7;
  return params;
}

}  // namespace tq
