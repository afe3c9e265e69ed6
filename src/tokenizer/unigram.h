// Unigram: of all ways to cut a piece into tokens the one with the best sum of scores (Viterbi).
// Shared by tokenizer.json and SentencePiece files, which differ in arithmetic and in what may be
// found in a text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tokenizer/byte_trie.h"
#include "tokenizer/token_model.h"
#include "tokenizer/vocabulary.h"

namespace tq::tok {

struct Unigram {
  Vocabulary vocabulary;
  ByteTrie trie;               // tokens that may be found in a text; values are ids
  std::vector<double> scores;  // by id
  double unk_score = 0.0;
  int32_t unk_id = -1;  // -1: characters without a token give nothing
  bool byte_fallback = false;
  std::array<int32_t, 256> byte_ids{};
  // Sums as f32, as SentencePiece keeps them; else f64.
  bool single_precision = false;
  // A run of unknown characters that is a token after all becomes that token.
  bool looks_up_unknown_runs = false;
};

// A character without a token of its own costs as much as the worst token and this.
inline constexpr double kUnknownPenalty = 10.0;

std::unique_ptr<TokenModel> MakeUnigramModel(Unigram unigram);

}  // namespace tq::tok
