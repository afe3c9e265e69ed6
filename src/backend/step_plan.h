// StepPlan: plain data that says what one step computes. Filled once by the scheduler, read by
// every layer. A GPU or another rank could receive it as it is.
#pragma once

#include <cstdint>
#include <vector>

namespace tq {

// Tokens per KV page: the attention tile (docs/numerics.md).
inline constexpr int kPageTokens = 64;

struct SequencePlan {
  int64_t first_token = 0;     // index of its first token in the step's flattened tokens
  int64_t num_tokens = 0;      // new tokens in this step
  int64_t start_position = 0;  // absolute position of the first new token
  int32_t state_slot = 0;      // where recurrent layers keep this sequence's state
  std::vector<int32_t> pages;  // page_table: page of positions [64 i, 64 i + 64)
};

// How the model takes embeddings that a step brings.
enum class EmbeddingUse : uint8_t {
  kReplace,    // in place of the ids' own, as the first block sees them: after scale and norm
  kCondition,  // beside them: what a denoising pass predicted last (diffusion_gemma)
};

// Embeddings of a run of the step's tokens: what a vision tower made of an image, for example.
struct EmbeddingSpan {
  int64_t first_token = 0;
  int64_t num_tokens = 0;
  EmbeddingUse use = EmbeddingUse::kReplace;
  std::vector<float> rows;  // [num_tokens, hidden_size]
};

// Axes of a position: time, height, width.
inline constexpr int64_t kPositionAxes = 3;

struct StepPlan {
  // [T]. Those of replaced embeddings still say who the token is, to n-gram hashes and per-layer
  // tables.
  std::vector<int32_t> ids;
  std::vector<int32_t> positions;         // [T]: places in the sequence, and in its pages
  std::vector<EmbeddingSpan> embeddings;  // nearly always none
  // [kPositionAxes, T]: what turns the pairs of a rope with sections (RopeSpec::axes). Empty: each
  // axis is `positions`.
  std::vector<int32_t> axis_positions;
  std::vector<SequencePlan> sequences;  // S, in token order
  bool causal = true;                   // false: the tokens of a sequence all see each other
  std::vector<int32_t> logits_tokens;   // tokens whose logits are wanted, ascending
  int64_t num_tokens() const { return static_cast<int64_t>(ids.size()); }
};

}  // namespace tq
