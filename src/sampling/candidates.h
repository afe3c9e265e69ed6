// Candidates: the ids that a token is drawn from, narrowed step by step. Always in the order of
// their ids; "better" is a larger logit, then a lower id. Nothing is sorted: a filter finds its
// threshold by counting (radix selection), in a few passes over the ids. Thread: one caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tq {

class Candidates {
 public:
  static constexpr size_t kBytesPerId = 28;
  // So that nothing below allocates. Cost: kBytesPerId bytes for each id.
  void Reserve(size_t vocab_size);

  // All ids with a logit above -inf (NaN counts as -inf, +inf as the largest finite number), at
  // temperature 1. Replaces what was there.
  void Collect(std::span<const float> logits);
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const int32_t> ids() const { return {ids_.data(), size_}; }

  // All of these require: not empty; at least one candidate stays.
  // From now on logits count divided by temperature.
  void SetTemperature(float temperature);
  void KeepTopK(size_t k);
  // The best ones, until their share of the weights reaches p.
  void KeepTopP(float p);
  // As KeepTopP, in the order of |-ln share - entropy|, the smallest first.
  void KeepTypical(float p);
  // Weights of at least p times the largest.
  void KeepMinP(float p);
  // Of those whose share is at least threshold only the last stays: least weight, then highest id.
  void DropTop(float threshold);
  // The first id at which the sum of the weights exceeds uniform / 2^53 of the total.
  int32_t Draw(uint64_t uniform53);

  // ln of the sum of exp(logit), for the temperature of now.
  double LogSum();

 private:
  void Weigh();
  // The candidates with the largest keys_ stay, the lower id first, until their mass (weights, or 1
  // for each) reaches wanted. Requires: 0 < wanted <= the mass of all.
  template <bool kByWeight>
  void KeepLargestKeys(uint64_t wanted);
  template <typename Keep>
  void KeepIf(Keep keep);
  uint64_t Share(float p) const;
  void RankByLogit();

  std::span<const float> logits() const { return {logits_.data(), size_}; }
  std::span<const uint64_t> weights() const { return {weights_.data(), size_}; }

  // The first size_ of each; as long as the largest vocabulary so far.
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
  std::vector<uint64_t> weights_;  // valid when weighted_
  std::vector<uint32_t> keys_;
  std::vector<uint32_t> level_;  // indices whose keys share the digits found so far
  std::vector<uint32_t> next_level_;
  size_t size_ = 0;
  uint64_t total_ = 0;
  float largest_ = 0.0f;
  float temperature_ = 1.0f;
  bool weighted_ = false;
};

}  // namespace tq
