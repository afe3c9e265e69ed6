// BPE: starts from the characters of a piece (or bytes, or the unknown token) and joins the pair of
// lowest rank until none is left. Both spellings: byte-level and SentencePiece-like.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/flat_map.h"
#include "tokenizer/token_model.h"
#include "tokenizer/vocabulary.h"

namespace tq::tok {

struct Bpe {
  Vocabulary vocabulary;
  FlatMap rank_of_pair;             // PairKey -> rank
  std::vector<int32_t> id_of_rank;  // what a pair becomes; several pairs may share a rank
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  int32_t unk_id = -1;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // a piece that is a token is that token

  static uint64_t PairKey(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
};

std::unique_ptr<TokenModel> MakeBpeModel(Bpe bpe);

}  // namespace tq::tok
