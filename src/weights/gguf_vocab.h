// The vocabulary of a GGUF file: the tokenizer.ggml.* keys, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf_keys.h"

namespace tq {

enum class GgufTokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct GgufVocab {
  std::string model;  // "llama" (SentencePiece BPE) or "gpt2" (byte-level BPE); not checked here
  std::vector<std::string_view> tokens;
  std::vector<GgufTokenType> types;  // one per token
  std::optional<int64_t> bos, eos, eot, eom, unknown, padding;

  std::string_view Text(int64_t id) const { return tokens[static_cast<size_t>(id)]; }
  GgufTokenType Type(int64_t id) const { return types[static_cast<size_t>(id)]; }
  // Ids that end a turn or a text, each once, eos first.
  std::vector<int64_t> EndIds() const;
};

// Errors: kNotFound (no tokens), kCorrupt (types, ids beyond the vocabulary); keys by name.
Result<GgufVocab> ReadGgufVocab(GgufKeys& keys);

}  // namespace tq
