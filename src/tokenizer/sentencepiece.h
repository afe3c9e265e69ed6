// A SentencePiece model file as pipeline parts. The parts with a file of their own:
//   normalizer: charsmap, white space, the space mark; one text in, one text out
//   BPE model:  merges by the score of what a pair spells, over texts rather than ids
//   decoder:    marks back to spaces, the spaces at the start off
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/sentencepiece_file.h"

namespace tq::tok {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// What tokenizer_config.json says about such a model.
struct SentencePieceOptions {
  std::string tokenizer_class;
  bool legacy = true;            // every stretch between special tokens gets a dummy prefix
  bool add_prefix_space = true;  // false: none does (not with legacy)
};

// Control pieces become special tokens. Errors: kCorrupt, kUnsupported (a tokenizer_class that
// renumbers the pieces).
Result<PipelineParts> LoadSentencePieceParts(std::string_view bytes, const std::string& where,
                                             const SentencePieceOptions& options);

Result<std::unique_ptr<Normalizer>> MakeSentencePieceNormalizer(const SentencePieceFile& file,
                                                                const SentencePieceOptions& options,
                                                                const std::string& where);
// Both models need pieces without duplicates; vocabulary holds their texts by index.
std::unique_ptr<TokenModel> MakeSentencePieceBpe(const SentencePieceFile& file,
                                                 Vocabulary vocabulary);
std::unique_ptr<Decoder> MakeSentencePieceDecoder(const SentencePieceFile& file);

}  // namespace tq::tok
