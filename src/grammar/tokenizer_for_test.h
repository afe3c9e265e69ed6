// A tokenizer whose tokens are the single bytes 0-255, some words and some special tokens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tq {

class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kEnd = 256;     // <end>
  static constexpr int32_t kThink = 257;   // <think>
  static constexpr int32_t kAnswer = 258;  // </think>
  explicit ByteTokenizer(std::vector<std::string> words = {}) : words_(std::move(words)) {}

  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<int32_t> ids;
    for (const char c : text) {
      ids.push_back(static_cast<uint8_t>(c));
    }
    return ids;
  }
  std::string Decode(std::span<const int32_t> ids, bool) const override {
    std::string out;
    for (const int32_t id : ids) {
      out += IsSpecial(id) ? std::string() : TokenBytes(id);
    }
    return out;
  }
  std::unique_ptr<DecodeStream> StartDecode(bool) const override { return nullptr; }
  std::string TokenBytes(int32_t id) const override {
    return id < 256 ? std::string(1, static_cast<char>(id)) : words_[static_cast<size_t>(id - 259)];
  }
  int32_t vocab_size() const override { return 259 + static_cast<int32_t>(words_.size()); }
  bool IsSpecial(int32_t id) const override { return id >= kEnd && id <= kAnswer; }
  std::string_view TokenText(int32_t id) const override {
    return id == kEnd ? "<end>" : id == kThink ? "<think>" : id == kAnswer ? "</think>" : "";
  }
  int32_t TokenId(std::string_view) const override { return -1; }

 private:
  std::vector<std::string> words_;
};

}  // namespace tq
