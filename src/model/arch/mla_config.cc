#include "model/arch/mla_config.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tq {

MlaSpec ReadMla(ConfigReader& config, int64_t num_heads, int rope) {
  constexpr int64_t kMaxDim = 1024;
  MlaSpec mla;
  mla.num_attention_heads = static_cast<int>(num_heads);
  const int64_t q_rank = config.Int("q_lora_rank", 0);
  if (q_rank < 0 || q_rank > (int64_t{1} << 20)) {
    config.Fail(Corrupt(config.where() + ": q_lora_rank: expected 0..2^20, found " +
                        std::to_string(q_rank)));
    return mla;
  }
  mla.q_lora_rank = static_cast<int>(q_rank);
  mla.kv_lora_rank = ReadSize(config, {"kv_lora_rank"}, 512, kMaxDim);
  mla.qk_nope_head_dim = ReadSize(config, {"qk_nope_head_dim"}, 128, kMaxDim);
  mla.qk_rope_head_dim = ReadSize(config, {"qk_rope_head_dim"}, 64, kMaxDim);
  mla.v_head_dim = ReadSize(config, {"v_head_dim"}, 128, kMaxDim);
  mla.rope = rope;
  if (mla.kv_lora_rank % 2 != 0 || mla.qk_rope_head_dim % 2 != 0) {
    config.Fail(Unsupported(config.where() + ": expected even kv_lora_rank and qk_rope_head_dim"));
  }
  mla.scale = static_cast<float>(1.0 / std::sqrt(mla.qk_nope_head_dim + mla.qk_rope_head_dim));
  config.Ignore({"head_dim", "qk_head_dim", "num_key_value_heads"});
  return mla;
}

}  // namespace tq
