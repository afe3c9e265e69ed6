// SentencePieceFile: what a SentencePiece model file ("tokenizer.model", a protobuf) says. Unknown
// fields are skipped, as protobuf does; what would change the ids is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tq::tok {

struct SentencePieceFile {
  enum class Kind { kUnigram = 1, kBpe = 2 };
  enum class Type { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;  // UTF-8, not empty
    float score = 0.0f;
    Type type = Type::kNormal;

    // Whether it can be found in a text by itself.
    bool IsText() const {
      return type == Type::kNormal || type == Type::kUserDefined || type == Type::kUnused;
    }
  };

  std::vector<Piece> pieces;  // by id
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  bool whitespace_is_suffix = false;
  std::string unk_surface = " \xE2\x81\x87 ";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";

  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  // Errors: kCorrupt (no protobuf, lengths beyond the end, pieces that are not UTF-8 or appear
  // twice), kUnsupported (other kinds, a denormalizer).
  static Result<SentencePieceFile> Parse(std::string_view bytes, const std::string& where);
};

}  // namespace tq::tok
