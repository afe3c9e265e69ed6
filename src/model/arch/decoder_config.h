// What the config.json of the plain decoder families has in common. An arch file calls ReadDecoder
// and then states its differences.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/json.h"
#include "model/spec.h"

namespace tq {

struct DecoderDefaults {
  float rms_norm_eps = 1e-6f;
  double rope_theta = 10000.0;
  int head_dim = 0;               // 0: hidden_size / num_attention_heads
  int num_attention_heads = 0;    // 0: required
  int num_key_value_heads = 0;    // 0: equal to num_attention_heads
  int64_t num_hidden_layers = 0;  // 0: required
  int64_t intermediate_size = 0;  // 0: required
  std::string_view eps_key = "rms_norm_eps";
  std::string_view activation_key = "hidden_act";  // empty: `activation` as it is
  std::string_view activation = "silu";
};

// Sizes, norms, one rope (ropes[0]) and num_hidden_layers equal blocks with full attention.
ModelSpec ReadDecoder(ConfigReader& reader, const DecoderDefaults& defaults);

// "silu" / "swish", "gelu_pytorch_tanh" / "gelu_tanh". Errors go to the reader.
Activation ReadActivation(ConfigReader& reader, std::string_view key,
                          std::string_view default_name);

// layer_types -> sliding[i]; `fallback` when the key is absent. Errors go to the reader.
std::vector<bool> ReadSlidingLayers(ConfigReader& reader, size_t num_layers,
                                    const std::vector<bool>& fallback);

// The first of `keys` that is present, in 1..max_value. Errors go to the reader, which names the
// first.
int ReadSize(ConfigReader& reader, std::initializer_list<std::string_view> keys,
             int64_t default_value, int64_t max_value = int64_t{1} << 22);

}  // namespace tq
