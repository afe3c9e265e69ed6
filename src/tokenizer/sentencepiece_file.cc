#include "tokenizer/sentencepiece_file.h"

#include <bit>
#include <cmath>
#include <utility>

#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

// One field of a protobuf message.
struct Field {
  uint32_t number = 0;
  uint32_t wire_type = 0;
  uint64_t value = 0;      // varint, fixed64, fixed32
  std::string_view bytes;  // length-delimited

  bool Bool() const { return value != 0; }
  float Float() const { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
};

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;

class Message {
 public:
  Message(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  bool done() const { return rest_.empty(); }

  Result<Field> Next() {
    Field field;
    TQ_ASSIGN_OR_RETURN(const uint64_t tag, ReadVarint());
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire_type = static_cast<uint32_t>(tag & 7);
    if (tag >> 32 != 0 || field.number == 0) return Broken("a field number out of range");
    switch (field.wire_type) {
      case kVarint: {
        TQ_ASSIGN_OR_RETURN(field.value, ReadVarint());
        return field;
      }
      case kFixed64:
        return ReadFixed(8, field);
      case kFixed32:
        return ReadFixed(4, field);
      case kBytes: {
        TQ_ASSIGN_OR_RETURN(const uint64_t size, ReadVarint());
        if (size > rest_.size()) {
          return Broken("a field of " + std::to_string(size) + " bytes where " +
                        std::to_string(rest_.size()) + " are left");
        }
        field.bytes = rest_.substr(0, static_cast<size_t>(size));
        rest_.remove_prefix(static_cast<size_t>(size));
        return field;
      }
      default:
        return Broken("wire type " + std::to_string(field.wire_type));
    }
  }

 private:
  Status Broken(const std::string& found) const {
    return Corrupt(where_ + ": expected a SentencePiece model (protobuf), found " + found);
  }

  Result<uint64_t> ReadVarint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return Broken("the end inside a number");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return Broken("a number of more than 64 bits");
  }

  Result<Field> ReadFixed(size_t size, Field field) {
    if (rest_.size() < size) return Broken("the end inside a number");
    for (size_t i = size; i-- > 0;) {
      field.value = field.value << 8 | static_cast<unsigned char>(rest_[i]);
    }
    rest_.remove_prefix(size);
    return field;
  }

  std::string_view rest_;
  const std::string& where_;
};

// Calls on_field for each field of a known number and the wire type that belongs to it.
template <typename OnField>
Status ForEachField(std::string_view bytes, const std::string& where, OnField&& on_field) {
  Message message(bytes, where);
  while (!message.done()) {
    TQ_ASSIGN_OR_RETURN(const Field field, message.Next());
    TQ_RETURN_IF_ERROR(on_field(field));
  }
  return Status::Ok();
}

Status ExpectType(const Field& field, uint32_t wire_type, const std::string& where) {
  if (field.wire_type == wire_type) return Status::Ok();
  return Corrupt(where + ": field " + std::to_string(field.number) + ": expected wire type " +
                 std::to_string(wire_type) + ", found " + std::to_string(field.wire_type));
}

Status ReadPieceFields(std::string_view bytes, const std::string& where,
                       SentencePieceFile::Piece* piece) {
  return ForEachField(bytes, where, [&](const Field& field) -> Status {
    if (field.number == 1) {
      TQ_RETURN_IF_ERROR(ExpectType(field, kBytes, where));
      piece->text = field.bytes;
    } else if (field.number == 2) {
      TQ_RETURN_IF_ERROR(ExpectType(field, kFixed32, where));
      piece->score = field.Float();
    } else if (field.number == 3) {
      TQ_RETURN_IF_ERROR(ExpectType(field, kVarint, where));
      if (field.value < 1 || field.value > 6) {
        return Unsupported(where + ": piece type: expected 1..6, found " +
                           std::to_string(field.value));
      }
      piece->type = static_cast<SentencePieceFile::Type>(field.value);
    }
    return Status::Ok();
  });
}

Result<SentencePieceFile::Piece> ParsePiece(std::string_view bytes, const std::string& where) {
  SentencePieceFile::Piece piece;
  TQ_RETURN_IF_ERROR(ReadPieceFields(bytes, where, &piece));
  if (piece.text.empty()) return Corrupt(where + ": expected a text, found an empty one");
  if (!IsUtf8(piece.text)) return Corrupt(where + ": its text is not UTF-8");
  if (piece.text.size() > kMaxTokenBytes) {
    return Unsupported(where + ": text of " + std::to_string(piece.text.size()) +
                       " bytes, at most " + std::to_string(kMaxTokenBytes) + " are allowed");
  }
  if (!std::isfinite(piece.score)) return Corrupt(where + ": score: expected a finite number");
  return piece;
}

Status SetText(const Field& field, const std::string& where, std::string* text) {
  TQ_RETURN_IF_ERROR(ExpectType(field, kBytes, where));
  if (!IsUtf8(field.bytes)) {
    return Corrupt(where + ": field " + std::to_string(field.number) + " is not UTF-8");
  }
  *text = field.bytes;
  return Status::Ok();
}

Status SetBool(const Field& field, const std::string& where, bool* value) {
  TQ_RETURN_IF_ERROR(ExpectType(field, kVarint, where));
  *value = field.Bool();
  return Status::Ok();
}

Status ParseTrainerSpec(std::string_view bytes, const std::string& where, SentencePieceFile* file) {
  return ForEachField(bytes, where, [&](const Field& field) -> Status {
    switch (field.number) {
      case 3:
        TQ_RETURN_IF_ERROR(ExpectType(field, kVarint, where));
        if (field.value != 1 && field.value != 2) {
          return Unsupported(where + ": model_type: expected 1 (unigram) or 2 (BPE), found " +
                             std::to_string(field.value));
        }
        file->kind = static_cast<SentencePieceFile::Kind>(field.value);
        return Status::Ok();
      case 24:
        return SetBool(field, where, &file->whitespace_is_suffix);
      case 35:
        return SetBool(field, where, &file->byte_fallback);
      case 44:
        return SetText(field, where, &file->unk_surface);
      case 46:
        return SetText(field, where, &file->bos_piece);
      case 47:
        return SetText(field, where, &file->eos_piece);
      default:
        return Status::Ok();
    }
  });
}

Status ParseNormalizerSpec(std::string_view bytes, const std::string& where,
                           SentencePieceFile* file) {
  return ForEachField(bytes, where, [&](const Field& field) -> Status {
    switch (field.number) {
      case 2:
        TQ_RETURN_IF_ERROR(ExpectType(field, kBytes, where));
        file->charsmap = field.bytes;
        return Status::Ok();
      case 3:
        return SetBool(field, where, &file->add_dummy_prefix);
      case 4:
        return SetBool(field, where, &file->remove_extra_whitespaces);
      case 5:
        return SetBool(field, where, &file->escape_whitespaces);
      default:
        return Status::Ok();
    }
  });
}

Status ParseDenormalizerSpec(std::string_view bytes, const std::string& where) {
  return ForEachField(bytes, where, [&](const Field& field) -> Status {
    if (field.number != 2 || field.bytes.empty()) return Status::Ok();
    return Unsupported(where + ": a charsmap for decoded text");
  });
}

Status ParseModel(std::string_view bytes, const std::string& where, SentencePieceFile* file) {
  return ForEachField(bytes, where, [&](const Field& field) -> Status {
    if (field.number >= 1 && field.number <= 5 && field.number != 4) {
      TQ_RETURN_IF_ERROR(ExpectType(field, kBytes, where));
    }
    switch (field.number) {
      case 1: {
        const std::string place = where + ": piece " + std::to_string(file->pieces.size());
        TQ_ASSIGN_OR_RETURN(SentencePieceFile::Piece piece, ParsePiece(field.bytes, place));
        file->pieces.push_back(std::move(piece));
        return Status::Ok();
      }
      case 2:
        return ParseTrainerSpec(field.bytes, where + ": trainer_spec", file);
      case 3:
        return ParseNormalizerSpec(field.bytes, where + ": normalizer_spec", file);
      case 5:
        return ParseDenormalizerSpec(field.bytes, where + ": denormalizer_spec");
      default:
        return Status::Ok();
    }
  });
}

}  // namespace

Result<SentencePieceFile> SentencePieceFile::Parse(std::string_view bytes,
                                                   const std::string& where) {
  SentencePieceFile file;
  TQ_RETURN_IF_ERROR(ParseModel(bytes, where, &file));
  if (file.pieces.empty()) {
    return Corrupt(where + ": expected a SentencePiece model with pieces, found none");
  }
  return file;
}

}  // namespace tq::tok
