#include "codec/codec.h"

#include <iterator>

#include "base/check.h"
#include "codec/all_codecs.h"

namespace tq {
namespace {

constexpr CodecInfo kCodecs[] = {
#define CODEC(name, Type)                                  \
  {CodecId::name,     Type::kName,     Type::kBlockValues, \
   Type::kBlockBytes, Type::DecodeRow, Type::AllFinite},
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
  if (format.codec != CodecId::kTurboQuant) return GetCodec(format.codec).name;
  return TurboQuantName(format, std::to_string(format.bits) + "-bit");
}

std::string FormatName(const StoredMatrix& matrix) {
  const bool trits = matrix.format.codec == CodecId::kTurboQuant && matrix.codebook.size() == 3;
  return trits ? TurboQuantName(matrix.format, "trit") : FormatName(matrix.format);
}

int64_t StoredMatrix::stored_bytes() const {
  constexpr int64_t kF16Bytes = 2;
  int64_t bytes = rows * row_bytes;
  if (scales != nullptr) bytes += rows * (cols / format.group) * kF16Bytes;
  return bytes + static_cast<int64_t>(codebook.size() + signs.size()) * kF16Bytes;
}

}  // namespace tq
