#include "engine/pooling.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace tq {
namespace {

constexpr std::array<std::pair<Pooling, std::string_view>, 3> kNames = {
    {{Pooling::kLast, "last"}, {Pooling::kMean, "mean"}, {Pooling::kFirst, "cls"}}};

}  // namespace

std::string_view PoolingName(Pooling pooling) {
  return kNames[static_cast<size_t>(pooling)].second;
}

std::optional<Pooling> ParsePooling(std::string_view name) {
  for (const auto& [pooling, text] : kNames) {
    if (text == name) return pooling;
  }
  return std::nullopt;
}

void Pooler::Reset() {
  num_wanted_ = num_added_ = 0;
  sums_.clear();
}

void Pooler::Want(int64_t first_token, int64_t num_tokens, int64_t begin, int64_t prompt_tokens,
                  std::vector<int32_t>& wanted) {
  int64_t from = 0;
  int64_t to = num_tokens;
  if (pooling_ == Pooling::kFirst) to = begin == 0 ? 1 : 0;
  if (pooling_ == Pooling::kLast) from = begin + num_tokens == prompt_tokens ? to - 1 : to;
  num_wanted_ = to - from;
  for (int64_t i = from; i < to; ++i) wanted.push_back(static_cast<int32_t>(first_token + i));
}

// One state after the other, in the order of the prompt, in double.
void Pooler::Add(std::span<const float> rows) {
  const auto count = static_cast<size_t>(std::exchange(num_wanted_, 0));
  if (count == 0) return;
  const size_t width = rows.size() / count;
  sums_.resize(width, 0.0);
  for (size_t i = 0; i < rows.size(); ++i) sums_[i % width] += double{rows[i]};
  num_added_ += static_cast<int64_t>(count);
}

std::vector<float> Pooler::Result() const {
  TQ_CHECK(num_added_ > 0);
  std::vector<float> out;
  out.reserve(sums_.size());
  for (const double sum : sums_) {
    out.push_back(static_cast<float>(sum / static_cast<double>(num_added_)));
  }
  return out;
}

}  // namespace tq
