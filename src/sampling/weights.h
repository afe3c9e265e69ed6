// Weights of candidates as integers: sums of them are exact, so they do not depend on the order of
// the candidates, on how they are cut into groups, nor on the instruction set.
#pragma once

#include <cstdint>
#include <span>

namespace tq {

// weight = Exp((logit - largest) / temperature) * 2^42, rounded to the nearest integer. The best
// candidate has 2^42, one of less than 2^-43 of it 0. Sums of 2^21 candidates fit.
inline constexpr int kWeightBits = 42;
inline constexpr uint64_t kFullWeight = uint64_t{1} << kWeightBits;

struct WeightScale {
  float largest;
  float temperature;
};

// Fills weights and returns their sum. Requires: every logit is finite and at most scale.largest.
uint64_t ComputeWeights(std::span<const float> logits, WeightScale scale,
                        std::span<uint64_t> weights);

// The mean of (logit - largest) / temperature under the weights, each product rounded to a multiple
// of 2^-42 before it is added.
float MeanOffset(std::span<const float> logits, WeightScale scale,
                 std::span<const uint64_t> weights, uint64_t total);

}  // namespace tq
