#include "tokenizer/sentencepiece.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "tokenizer/component.h"
#include "tokenizer/unigram.h"

namespace tq::tok {
namespace {

using Type = SentencePieceFile::Type;

Result<Vocabulary> ReadVocabulary(const SentencePieceFile& file, const std::string& where) {
  Vocabulary vocabulary;
  int32_t num_unknown = 0;
  int32_t num_bytes = 0;
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = file.pieces[i];
    const std::string place = where + ": piece " + std::to_string(i);
    TQ_RETURN_IF_ERROR(vocabulary.Add(piece.text, static_cast<int32_t>(i), place));
    if (piece.type == Type::kUnknown) ++num_unknown;
    if (piece.type == Type::kByte) ++num_bytes;
  }
  if (num_unknown != 1) {
    return Corrupt(where + ": expected one piece of type unknown, found " +
                   std::to_string(num_unknown));
  }
  if (!file.byte_fallback) return vocabulary;
  std::array<int32_t, 256> bytes{};
  FindByteTokens(vocabulary, &bytes);
  const bool has_all = std::all_of(bytes.begin(), bytes.end(), [&](int32_t id) {
    return id >= 0 && file.pieces[static_cast<size_t>(id)].type == Type::kByte;
  });
  if (has_all && num_bytes == 256) return vocabulary;
  return Corrupt(where + ": byte_fallback: expected 256 byte pieces, found " +
                 std::to_string(num_bytes));
}

std::unique_ptr<TokenModel> MakeSentencePieceUnigram(const SentencePieceFile& file,
                                                     Vocabulary vocabulary) {
  Unigram unigram;
  unigram.single_precision = true;
  unigram.byte_fallback = file.byte_fallback;
  float min_score = std::numeric_limits<float>::max();
  float max_score = std::numeric_limits<float>::min();
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    if (piece.type != Type::kNormal) continue;
    min_score = std::min(min_score, piece.score);
    max_score = std::max(max_score, piece.score);
  }
  unigram.unk_score = min_score - static_cast<float>(kUnknownPenalty);
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = file.pieces[i];
    double score = piece.score;
    // A user-defined piece beats every way to spell it.
    if (piece.type == Type::kUserDefined) {
      score = static_cast<double>(static_cast<float>(piece.text.size()) * max_score) - 0.1;
    }
    unigram.scores.push_back(score);
    if (piece.type == Type::kUnknown) unigram.unk_id = static_cast<int32_t>(i);
    if (piece.type == Type::kNormal || piece.type == Type::kUserDefined) {
      unigram.trie.Insert(piece.text, static_cast<uint32_t>(i));
    }
  }
  FindByteTokens(vocabulary, &unigram.byte_ids);
  unigram.vocabulary = std::move(vocabulary);
  return MakeUnigramModel(std::move(unigram));
}

// Control pieces never come out of a text by themselves; the unknown piece shows as its surface.
Status AddControlTokens(const SentencePieceFile& file, const std::string& where,
                        PipelineParts* parts) {
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = file.pieces[i];
    if (piece.type != Type::kControl && piece.type != Type::kUnknown) continue;
    AddedToken token;
    token.content = piece.text;
    token.id = static_cast<int32_t>(i);
    token.special = true;
    if (piece.type == Type::kUnknown) token.decoded = file.unk_surface;
    TQ_RETURN_IF_ERROR(
        parts->added_tokens.Add(std::move(token), parts->model->vocabulary(), where));
  }
  return Status::Ok();
}

std::string_view WithoutFast(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  return name;
}

// Their Python classes shift or reorder the ids of the file.
Status CheckClass(std::string_view name, const std::string& where) {
  for (const std::string_view known :
       {"XLMRobertaTokenizer", "CamembertTokenizer", "MBartTokenizer", "MBart50Tokenizer",
        "NllbTokenizer", "XGLMTokenizer", "BarthezTokenizer", "PegasusTokenizer", "FNetTokenizer",
        "CpmTokenizer"}) {
    if (WithoutFast(name) == known) {
      return Unsupported(where + ": tokenizer_class " + Quoted(name) +
                         " renumbers the pieces: use a tokenizer.json instead");
    }
  }
  return Status::Ok();
}

}  // namespace

Result<PipelineParts> LoadSentencePieceParts(std::string_view bytes, const std::string& where,
                                             const SentencePieceOptions& options) {
  TQ_RETURN_IF_ERROR(CheckClass(options.tokenizer_class, where));
  TQ_ASSIGN_OR_RETURN(const SentencePieceFile file, SentencePieceFile::Parse(bytes, where));
  TQ_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(file, where));
  PipelineParts parts;
  TQ_ASSIGN_OR_RETURN(parts.normalizer, MakeSentencePieceNormalizer(file, options, where));
  parts.model = file.kind == SentencePieceFile::Kind::kBpe
                    ? MakeSentencePieceBpe(file, std::move(vocabulary))
                    : MakeSentencePieceUnigram(file, std::move(vocabulary));
  parts.decoders.push_back(MakeSentencePieceDecoder(file));
  if (file.byte_fallback) {
    TQ_ASSIGN_OR_RETURN(DecoderChain fallback, MakeDecoderChain({{"type", "ByteFallback"}}, where));
    parts.decoders.push_back(std::move(fallback.front()));
  }
  TQ_RETURN_IF_ERROR(AddControlTokens(file, where, &parts));
  // What the Python classes add when the config does not say: T5 ends a text, the others begin it.
  const std::string_view name = WithoutFast(options.tokenizer_class);
  const bool ends = name == "T5Tokenizer" || name == "UMT5Tokenizer";
  const AddedToken* token = parts.added_tokens.Find(ends ? file.eos_piece : file.bos_piece);
  if (token != nullptr) {
    (ends ? parts.post_processor.suffix : parts.post_processor.prefix) = {token->id};
  }
  return parts;
}

}  // namespace tq::tok
