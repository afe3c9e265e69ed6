// Builds small GGUF files for tests: the bytes of a valid one, or of one that lies as told.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "weights/gguf_value.h"

namespace tq {

class GgufBuilder {
 public:
  GgufBuilder& Int(const std::string& key, uint32_t value) {
    return Key(key, GgufType::kU32, Bytes(value));
  }
  GgufBuilder& Float(const std::string& key, float value) {
    return Key(key, GgufType::kF32, Bytes(value));
  }
  GgufBuilder& Bool(const std::string& key, bool value) {
    return Key(key, GgufType::kBool, std::string(1, value ? '\1' : '\0'));
  }
  GgufBuilder& Text(const std::string& key, std::string_view value) {
    return Key(key, GgufType::kString, Sized(value));
  }
  GgufBuilder& Texts(const std::string& key, const std::vector<std::string>& values) {
    std::string items;
    for (const std::string& value : values) items += Sized(value);
    return Array(key, GgufType::kString, values.size(), items);
  }
  template <typename T>
  GgufBuilder& Numbers(const std::string& key, GgufType type, const std::vector<T>& values) {
    std::string items;
    for (const T value : values) items += Bytes(value);
    return Array(key, type, values.size(), items);
  }
  GgufBuilder& Remove(const std::string& key) {
    keys_.erase(key);
    return *this;
  }

  // An f32 tensor; dims as in the file, contiguous one first. Values 1, 2, 3, ...
  GgufBuilder& Tensor(const std::string& name, const std::vector<uint64_t>& dims) {
    size_t n = 1;
    for (const uint64_t dim : dims) n *= dim;
    std::string data;
    for (size_t i = 0; i < n; ++i) data += Bytes(static_cast<float>(i + 1));
    tensors_[name] = {dims, data};
    return *this;
  }
  GgufBuilder& RemoveTensor(const std::string& name) {
    tensors_.erase(name);
    return *this;
  }

  std::string Build() const {
    constexpr size_t kAlignment = 32;
    std::string infos;
    std::string data;
    for (const auto& [name, tensor] : tensors_) {
      infos += Sized(name) + Bytes(static_cast<uint32_t>(tensor.dims.size()));
      for (const uint64_t dim : tensor.dims) infos += Bytes(dim);
      infos += Bytes(uint32_t{0}) + Bytes(static_cast<uint64_t>(data.size()));
      data += tensor.data;
      data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment);
    }
    std::string out = "GGUF" + Bytes(uint32_t{3}) + Bytes(static_cast<uint64_t>(tensors_.size())) +
                      Bytes(static_cast<uint64_t>(keys_.size()));
    for (const auto& [key, value] : keys_) out += Sized(key) + value;
    out += infos;
    out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment);
    return out + data;
  }

 private:
  struct TensorData {
    std::vector<uint64_t> dims;
    std::string data;
  };

  template <typename T>
  static std::string Bytes(T value) {
    std::string out(sizeof(T), '\0');
    std::memcpy(out.data(), &value, sizeof(T));
    return out;
  }
  static std::string Sized(std::string_view text) {
    return Bytes(static_cast<uint64_t>(text.size())) + std::string(text);
  }
  GgufBuilder& Key(const std::string& key, GgufType type, const std::string& value) {
    keys_[key] = Bytes(static_cast<uint32_t>(type)) + value;
    return *this;
  }
  GgufBuilder& Array(const std::string& key, GgufType type, size_t count,
                     const std::string& items) {
    return Key(key, GgufType::kArray,
               Bytes(static_cast<uint32_t>(type)) + Bytes(static_cast<uint64_t>(count)) + items);
  }

  std::map<std::string, std::string> keys_;
  std::map<std::string, TensorData> tensors_;
};

// A llama of one layer: hidden 8, two heads of 4, one kv head, ffn 6, vocabulary of six
// SentencePiece tokens.
inline GgufBuilder TinyLlamaGguf() {
  GgufBuilder b;
  b.Text("general.architecture", "llama").Int("llama.block_count", 1);
  b.Int("llama.embedding_length", 8).Int("llama.feed_forward_length", 6);
  b.Int("llama.attention.head_count", 2).Int("llama.attention.head_count_kv", 1);
  b.Float("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  b.Text("tokenizer.ggml.model", "llama");
  b.Texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a", "b", "ab"});
  b.Numbers<float>("tokenizer.ggml.scores", GgufType::kF32, {0, 0, 0, -1, -2, -3});
  b.Numbers<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {2, 3, 3, 1, 1, 1});
  b.Tensor("token_embd.weight", {8, 6}).Tensor("output_norm.weight", {8});
  b.Tensor("blk.0.attn_norm.weight", {8}).Tensor("blk.0.ffn_norm.weight", {8});
  b.Tensor("blk.0.attn_q.weight", {8, 8}).Tensor("blk.0.attn_k.weight", {8, 4});
  b.Tensor("blk.0.attn_v.weight", {8, 4}).Tensor("blk.0.attn_output.weight", {8, 8});
  b.Tensor("blk.0.ffn_gate.weight", {8, 6}).Tensor("blk.0.ffn_up.weight", {8, 6});
  b.Tensor("blk.0.ffn_down.weight", {6, 8});
  return b;
}

}  // namespace tq
