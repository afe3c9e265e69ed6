// Which width and group a matrix gets, by its path: the rule of the published converter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tq {

struct QuantizeSettings {
  int bits = 3;         // 2, 3, 4
  int group_size = 64;  // 32, 64, 128
  bool rotate = true;
  std::string rotation =
      "hadamard";  // as the config records it: hadamard, blockwise_hadamard, none
  uint64_t rotation_seed = 42;
  std::optional<int> attn_bits =
      std::nullopt;  // paths with self_attn, attention, linear_attn: 2, 3, 4
  std::optional<int> mlp_bits = std::nullopt;        // paths with mlp, feed_forward: 2, 3, 4
  std::optional<int> mlp_group_size = std::nullopt;  // 16, 32, 64, 128
  std::map<std::string, int> path_bits = {};  // of single output paths: before all other rules
  // Errors: kInvalidArgument naming the setting, its range and the value.
  Status Validate() const;
};

int BitsForPath(const QuantizeSettings& settings, std::string_view path);
int GroupForPath(const QuantizeSettings& settings, std::string_view path);

// A linear matrix is quantized when both sides are at least 32 and whole groups fit a row.
bool IsQuantizable(int64_t rows, int64_t cols, int group);

}  // namespace tq
