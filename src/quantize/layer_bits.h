// Which width and group a matrix gets, by its path: the rules of the published converter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/affine_encode.h"

namespace tq {

struct QuantizeSettings {
  int bits = 3;         // 2, 3, 4
  int group_size = 64;  // 16, 32, 64, 128
  bool rotate = true;
  std::string rotation =
      "hadamard";  // as the config records it: hadamard, blockwise_hadamard, none
  uint64_t rotation_seed = 42;
  std::optional<int> attn_bits =
      std::nullopt;  // paths with self_attn, attention, linear_attn: 1 to 4
  std::optional<int> mlp_bits = std::nullopt;        // paths with mlp, feed_forward: 1 to 4
  std::optional<int> mlp_group_size = std::nullopt;  // 16, 32, 64, 128
  bool use_qjl = false;                              // a one-bit residual, not for experts

  // Of routed experts; the later overrule the earlier.
  bool ternary_experts = false;
  std::optional<int> expert_down_bits = std::nullopt;  // of their last matrix: 2, 3, 4
  std::map<int, int> expert_layer_tiers = {};          // layer -> codebook entries 3, 4, 8, 16
  std::vector<int> protected_expert_layers = {};       // ascending
  int protect_bits = 3;                                // of those: 2, 3, 4
  std::optional<AffineSpec> affine_extras =
      std::nullopt;  // of embeddings and what else stays float

  std::map<std::string, int> path_bits = {};  // of single output paths: before all other rules
  // Errors: kInvalidArgument naming the setting, its range and the value.
  Status Validate() const;
};

// Attention, feed-forward and shared experts.
int BitsForPath(const QuantizeSettings& settings, std::string_view path);
int GroupForPath(const QuantizeSettings& settings, std::string_view path);
// 2, 3 (trits), 4, 8 or 16, by all rules. routed_expert: the matrix is a stack of experts.
int CodebookEntriesForPath(const QuantizeSettings& settings, std::string_view path,
                           bool routed_expert);

// The number after a "layers." component: "model.layers.12.mlp.up_proj" gives 12; -1: none.
int LayerOfPath(std::string_view path);

// A linear matrix is quantized when both sides are at least 32 and whole groups fit a row.
bool IsQuantizable(int64_t rows, int64_t cols, int group);

}  // namespace tq
