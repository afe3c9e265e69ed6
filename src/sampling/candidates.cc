#include "sampling/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "sampling/weights.h"

namespace tq {
namespace {

constexpr float kLargestFloat = std::numeric_limits<float>::max();

// Rising with the value; +0 and -0 are equal.
uint32_t RisingKey(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// In lanes, so that compilers make vectors of it.
float Largest(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(values[0]);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

// The least integer of at least p * total.
uint64_t CeilShare(float p, uint64_t total) {
  return static_cast<uint64_t>(std::ceil(double{p} * static_cast<double>(total)));
}

}  // namespace

void Candidates::Reserve(size_t vocab_size) {
  if (vocab_size <= ids_.size()) return;
  ids_.resize(vocab_size);
  logits_.resize(vocab_size);
  weights_.resize(vocab_size);
  keys_.resize(vocab_size);
  level_.resize(vocab_size);
  next_level_.resize(vocab_size);
}

void Candidates::Collect(std::span<const float> logits) {
  Reserve(logits.size());
  int32_t* ids = ids_.data();
  float* kept = logits_.data();
  size_t count = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    ids[count] = static_cast<int32_t>(id);
    kept[count] = std::min(logits[id], kLargestFloat);
    count += logits[id] > -std::numeric_limits<float>::infinity();  // false for NaN
  }
  size_ = count;
  temperature_ = 1.0f;
  weighted_ = false;
}

void Candidates::SetTemperature(float temperature) {
  if (temperature == temperature_) return;
  temperature_ = temperature;
  weighted_ = false;
}

void Candidates::Weigh() {
  if (weighted_) return;
  largest_ = Largest(logits());
  total_ = ComputeWeights(logits(), {largest_, temperature_}, {weights_.data(), size_});
  weighted_ = true;
}

template <typename Keep>
void Candidates::KeepIf(Keep keep) {
  size_t count = 0;
  uint64_t total = 0;
  // Weights that are not valid are moved too: that costs less than a branch.
  for (size_t i = 0; i < size_; ++i) {
    const bool stays = keep(i);
    const uint64_t weight = weights_[i];
    ids_[count] = ids_[i];
    logits_[count] = logits_[i];
    weights_[count] = weight;
    total += stays ? weight : 0;
    count += stays;
  }
  size_ = count;
  total_ = total;
}

template <bool kByWeight>
void Candidates::KeepLargestKeys(uint64_t wanted) {
  constexpr std::array<int, 3> kShifts = {21, 10, 0};
  constexpr std::array<uint32_t, 3> kDigits = {1u << 11, 1u << 11, 1u << 10};
  const auto mass = [&](size_t i) { return kByWeight ? weights_[i] : uint64_t{1}; };
  uint32_t threshold = 0;
  size_t level_size = size_;
  for (size_t level = 0; level < kShifts.size(); ++level) {
    const auto digit = [&](size_t i) {
      return (keys_[i] >> kShifts[level]) & (kDigits[level] - 1);
    };
    const auto index = [&](size_t i) { return level == 0 ? i : size_t{level_[i]}; };
    // Two tables: neighbours often share a digit, and one would wait for the other's sum.
    std::array<uint64_t, 1 << 11> sums{};
    std::array<uint64_t, 1 << 11> odd_sums{};
    size_t at = 0;
    for (; at + 1 < level_size; at += 2) {
      sums[digit(index(at))] += mass(index(at));
      odd_sums[digit(index(at + 1))] += mass(index(at + 1));
    }
    if (at < level_size) sums[digit(index(at))] += mass(index(at));
    uint32_t found = kDigits[level] - 1;
    for (; sums[found] + odd_sums[found] < wanted; --found) {
      wanted -= sums[found] + odd_sums[found];
    }
    threshold |= found << kShifts[level];
    size_t count = 0;
    uint32_t differing = 0;  // digits in which the keys of the next level differ
    uint32_t first = 0;
    for (size_t i = 0; i < level_size; ++i) {
      next_level_[count] = static_cast<uint32_t>(index(i));
      const bool stays = digit(index(i)) == found;
      if (count == 0) first = keys_[index(i)];
      differing |= stays ? keys_[index(i)] ^ first : 0;
      count += stays;
    }
    level_size = count;
    std::swap(level_, next_level_);
    // Many equal logits: nothing more to tell apart.
    if (differing == 0) {
      threshold = first;
      break;
    }
  }
  // Of those on the threshold the first ones, until what is still wanted is there.
  uint64_t taken = 0;
  size_t last = 0;
  for (size_t i = 0; i < level_size && taken < wanted; ++i) {
    last = level_[i];
    taken += mass(last);
  }
  KeepIf([&](size_t i) { return keys_[i] > threshold || (keys_[i] == threshold && i <= last); });
}

void Candidates::RankByLogit() {
  for (size_t i = 0; i < size_; ++i) keys_[i] = RisingKey(logits_[i]);
}

void Candidates::KeepTopK(size_t k) {
  if (k >= size_) return;
  RankByLogit();
  KeepLargestKeys<false>(k);
}

uint64_t Candidates::Share(float p) const {
  return std::clamp<uint64_t>(CeilShare(p, total_), 1, total_);
}

void Candidates::KeepTopP(float p) {
  Weigh();
  RankByLogit();
  KeepLargestKeys<true>(Share(p));
}

void Candidates::KeepTypical(float p) {
  Weigh();
  // -ln share - entropy is the mean of the offsets less the offset.
  const float mean = MeanOffset(logits(), {largest_, temperature_}, weights(), total_);
  for (size_t i = 0; i < size_; ++i) {
    const float offset = (logits_[i] - largest_) / temperature_;
    keys_[i] = ~std::bit_cast<uint32_t>(std::fabs(offset - mean));
  }
  KeepLargestKeys<true>(Share(p));
  weighted_ = false;  // the best one may be gone
}

void Candidates::KeepMinP(float p) {
  Weigh();
  const uint64_t least = CeilShare(p, kFullWeight);
  KeepIf([&](size_t i) { return weights_[i] >= least; });
}

void Candidates::DropTop(float threshold) {
  Weigh();
  const uint64_t least = CeilShare(threshold, total_);
  size_t last = size_;
  for (size_t i = 0; i < size_; ++i) {
    if (weights_[i] < least) continue;
    if (last == size_ || weights_[i] <= weights_[last]) last = i;
  }
  if (last == size_) return;
  KeepIf([&](size_t i) { return weights_[i] < least || i == last; });
  weighted_ = false;
}

int32_t Candidates::Draw(uint64_t uniform53) {
  Weigh();
  using Wide = unsigned __int128;
  const auto target = static_cast<uint64_t>((Wide{uniform53} * total_) >> 53);
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < size_; ++i) {
    sum += weights_[i];
    if (sum > target) return ids_[i];
  }
  return ids_[size_ - 1];
}

double Candidates::LogSum() {
  Weigh();
  // 42: kWeightBits.
  return double{largest_} + LogF64(static_cast<double>(total_) * 0x1.0p-42);
}

}  // namespace tq
