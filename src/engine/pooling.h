// Pooling: one vector for a prompt, out of the hidden states of its tokens (behind the final norm).
// The states may come in pieces of any size: the result does not depend on how they were cut.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tq {

// Of the last token; of all, the mean; of the first one ("cls").
enum class Pooling : uint8_t { kLast, kMean, kFirst };
std::string_view PoolingName(Pooling pooling);  // "last", "mean", "cls"
std::optional<Pooling> ParsePooling(std::string_view name);

class Pooler {
 public:
  explicit Pooler(Pooling pooling) : pooling_(pooling) {}

  // Whether the states of a prefix that was computed before are not missed.
  bool may_skip_prefix() const { return pooling_ == Pooling::kLast; }
  // Back to the beginning of the prompt.
  void Reset();
  // Appends to `wanted` the tokens of the step whose states are needed: it has num_tokens tokens
  // from index first_token on, at positions from `begin` on, of a prompt of prompt_tokens.
  void Want(int64_t first_token, int64_t num_tokens, int64_t begin, int64_t prompt_tokens,
            std::vector<int32_t>& wanted);
  // How many rows the last Want asked for.
  int64_t num_wanted() const { return num_wanted_; }
  // Their states, one after another.
  void Add(std::span<const float> rows);
  // Requires: the whole prompt was added.
  std::vector<float> Result() const;

 private:
  Pooling pooling_;
  int64_t num_wanted_ = 0;
  int64_t num_added_ = 0;
  std::vector<double> sums_;
};

}  // namespace tq
