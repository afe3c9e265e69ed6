#include "codec/codec.h"

#include <iterator>

#include "base/check.h"
#include "codec/all_codecs.h"

namespace tq {
namespace {

template <typename Type>
constexpr const Grid* GridOfType() {
  if constexpr (requires { Type::kGrid; }) return &Type::kGrid;
  return nullptr;
}

template <typename Type>
constexpr auto DecodeGridOfType() -> void (*)(const uint8_t*, GridBlock&) {
  if constexpr (requires { Type::kGrid; }) return Type::DecodeGrid;
  return nullptr;
}

constexpr CodecInfo kCodecs[] = {
#define CODEC(name, Type)                                                   \
  {CodecId::name,   Type::kName,     Type::kBlockValues, Type::kBlockBytes, \
   Type::DecodeRow, Type::AllFinite, GridOfType<Type>(), DecodeGridOfType<Type>()},
#include "codec/codec_list.inc"
#undef CODEC
};

std::string TurboQuantName(const Format& format, std::string_view width) {
  std::string name = std::string(GetCodec(format.codec).name) + " " + std::string(width) + " g" +
                     std::to_string(format.group);
  if (format.transform == Transform::kHadamard) name += " hadamard";
  return name;
}

}  // namespace

std::span<const CodecInfo> AllCodecs() { return kCodecs; }

const CodecInfo& GetCodec(CodecId id) {
  const size_t index = static_cast<size_t>(id);
  TQ_CHECK(index < std::size(kCodecs));
  return kCodecs[index];
}

std::string FormatName(const Format& format) {
  const std::string name = GetCodec(format.codec).name;
  switch (format.codec) {
    case CodecId::kTurboQuant:
      return TurboQuantName(format, std::to_string(format.bits) + "-bit");
    case CodecId::kAffine:
      return name + " " + std::to_string(format.bits) + "-bit g" + std::to_string(format.group);
    case CodecId::kFp4:
    case CodecId::kFp8:
      return name + " g" + std::to_string(format.group);
    default:
      return name;
  }
}

std::string FormatName(const StoredMatrix& matrix) {
  const CodecId codec = matrix.format.codec;
  if (codec == CodecId::kTurboQuant && matrix.codebook.size() == 3) {
    return TurboQuantName(matrix.format, "trit");
  }
  if (codec == CodecId::kFp4) return matrix.scale_type == DType::kE8M0 ? "mxfp4" : "nvfp4";
  if (codec == CodecId::kFp8 && matrix.scale_type == DType::kE8M0) return "mxfp8";
  return FormatName(matrix.format);
}

int64_t StoredMatrix::scale_bytes() const {
  if (scales == nullptr) return 0;
  return scale_rows() * scale_cols() * static_cast<int64_t>(DTypeBytes(scale_type));
}

int64_t StoredMatrix::payload_bytes() const {
  const CodecInfo& codec = GetCodec(format.codec);
  if (format.codec == CodecId::kTurboQuant) {
    return TurboQuantWords(static_cast<int>(codebook.size()), cols) * 4;
  }
  if (codec.block_bytes == 0) return (cols * format.bits + 7) / 8;
  return cols / codec.block_values * codec.block_bytes;
}

int64_t StoredMatrix::stored_bytes() const {
  constexpr int64_t kF16Bytes = 2;
  const int64_t scale_tensors = biases != nullptr ? 2 : 1;
  return rows * payload_bytes() + scale_tensors * scale_bytes() +
         static_cast<int64_t>(codebook.size() + signs.size()) * kF16Bytes;
}

}  // namespace tq
