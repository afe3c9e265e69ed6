#include "weights/gguf_vocab.h"

#include <algorithm>

namespace tq {
namespace {

void ReadTypes(GgufKeys& keys, GgufVocab& vocab) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  vocab.types.assign(vocab.tokens.size(), GgufTokenType::kNormal);
  if (!keys.Has(kKey)) return;
  const GgufValue* types = keys.Array(kKey);
  if (types == nullptr) return;
  if (!types->IsInteger() || types->count != vocab.tokens.size()) {
    keys.Bad(kKey, "expected " + std::to_string(vocab.tokens.size()) + " integers, found " +
                       std::to_string(types->count) + " items, " + types->TypeName());
    return;
  }
  for (uint64_t i = 0; i < types->count; ++i) {
    const std::optional<int64_t> type = types->IntAt(i);
    if (!type || *type < 1 || *type > 6) {
      keys.Bad(kKey, "token " + std::to_string(i) + ": expected a type of 1 .. 6");
      return;
    }
    vocab.types[i] = static_cast<GgufTokenType>(*type);
  }
}

std::optional<int64_t> ReadId(GgufKeys& keys, std::string_view name, const GgufVocab& vocab) {
  const std::string key = "tokenizer.ggml." + std::string(name);
  if (!keys.Has(key)) return std::nullopt;
  return keys.Int(key, 0, 0, static_cast<int64_t>(vocab.tokens.size()) - 1);
}

// SentencePiece vocabularies whose writer left the ids out have them at these places.
void AssumeSentencePieceIds(GgufVocab& vocab) {
  if (vocab.model != "llama" || vocab.tokens.size() < 3) return;
  if (!vocab.unknown && vocab.Type(0) == GgufTokenType::kUnknown) vocab.unknown = 0;
  if (!vocab.bos && vocab.Type(1) == GgufTokenType::kControl) vocab.bos = 1;
  if (!vocab.eos && vocab.Type(2) == GgufTokenType::kControl) vocab.eos = 2;
}

}  // namespace

std::vector<int64_t> GgufVocab::EndIds() const {
  std::vector<int64_t> out;
  for (const std::optional<int64_t>& id : {eos, eot, eom}) {
    if (id && std::find(out.begin(), out.end(), *id) == out.end()) out.push_back(*id);
  }
  return out;
}

Result<GgufVocab> ReadGgufVocab(GgufKeys& keys) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  GgufVocab vocab;
  vocab.model = keys.String("tokenizer.ggml.model", "");
  if (const GgufValue* tokens = keys.Array(kTokens)) {
    if (tokens->type != GgufType::kString || tokens->count == 0) {
      keys.Bad(kTokens, "expected strings, found " + std::to_string(tokens->count) + " items, " +
                            tokens->TypeName());
    }
    vocab.tokens = tokens->strings;
  }
  TQ_RETURN_IF_ERROR(keys.status());
  ReadTypes(keys, vocab);
  vocab.bos = ReadId(keys, "bos_token_id", vocab);
  vocab.eos = ReadId(keys, "eos_token_id", vocab);
  vocab.eot = ReadId(keys, "eot_token_id", vocab);
  vocab.eom = ReadId(keys, "eom_token_id", vocab);
  vocab.unknown = ReadId(keys, "unknown_token_id", vocab);
  vocab.padding = ReadId(keys, "padding_token_id", vocab);
  TQ_RETURN_IF_ERROR(keys.status());
  AssumeSentencePieceIds(vocab);
  return vocab;
}

}  // namespace tq
