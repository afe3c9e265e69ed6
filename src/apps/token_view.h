// How `tokenize` shows a text to people: special tokens marked, and two readings of it compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace tq {

// A text and what a tokenizer makes of it.
struct TokenizedText {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<std::string> pieces;  // the bytes of each token, for special ones their name
  std::vector<std::string> names;   // as the tokenizer's file writes them
  std::vector<bool> special;
  std::vector<TextSpan> plain;  // parts of the text without special tokens, whatever they look like
};
TokenizedText TokenizeText(const Tokenizer& tokenizer, std::string text,
                           std::vector<TextSpan> plain, bool add_special_tokens);

struct TextPiece {
  std::string text;
  bool special = false;
};
// The text cut at its special tokens, in order. Those that the tokenizer adds are there, too.
std::vector<TextPiece> CutAtSpecial(const TokenizedText& tokenized);
// Special tokens in colour, or in double square brackets (U+27E6, U+27E7). Control characters, but
// for line ends and tabs, as \x1b.
std::string ShowPieces(const std::vector<TextPiece>& pieces, bool colour);

// Where two readings part.
struct TokenDiff {
  bool equal_text = true;
  size_t text_byte = 0;  // first byte that differs
  bool equal_ids = true;
  size_t first_token = 0;  // first token that differs, in both
  size_t places = 0;       // stretches of text that are cut differently
  size_t tokens_a = 0;     // tokens in them
  size_t tokens_b = 0;
  size_t other_ids = 0;  // pieces that are the same but have another id

  bool equal() const { return equal_text && equal_ids; }
};
TokenDiff CompareTokens(const TokenizedText& a, const TokenizedText& b);
// A few lines; names: how the two models are called.
std::string DiffText(const TokenDiff& diff, const TokenizedText& a, const TokenizedText& b,
                     const std::string& name_a, const std::string& name_b);
OrderedJson DiffJson(const TokenDiff& diff, const TokenizedText& a, const TokenizedText& b);

}  // namespace tq
