// Format: what the bytes of a stored matrix mean, as a value that travels with the matrix.
// A stored format is not a memory layout: a backend may repack at load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "tensor/dtype.h"

namespace tq {

// One enumerator per line of codec_list.inc.
enum class CodecId : uint8_t {
#define CODEC(name, Type) name,
#include "codec/codec_list.inc"
#undef CODEC
};

// What must happen to the activation before it meets the codes (instead of undoing it on the
// weight).
enum class Transform : uint8_t {
  kNone,
  kHadamard,  // multiply by signs, then the block Hadamard of spec "block rule" (codec/hadamard.h)
};

struct Format {
  CodecId codec{};
  int bits = 0;   // bits of one code (16 for f16; nominal for trits: 2)
  int group = 1;  // consecutive columns that share a scale; 1 when there is none
  Transform transform = Transform::kNone;
  bool operator==(const Format&) const = default;
};

// A matrix [rows, cols] as stored. Borrowed memory: `owner` of the bytes is the WeightSource.
// Which parts are set depends on the codec: plain floats and GGUF blocks use `data` alone.
struct StoredMatrix {
  Format format;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* data = nullptr;  // row-major codes; row_bytes apart
  int64_t row_bytes = 0;
  const std::byte* scales = nullptr;  // [scale_rows, scale_cols] of scale_type
  const std::byte* biases = nullptr;  // affine: as the scales, or null
  DType scale_type = DType::kF16;     // TurboQuant: f16
  int64_t block_rows = 1;             // consecutive rows that share scales
  float global_scale = 1.0f;          // fp4, fp8: divides every scale
  std::span<const float> codebook;    // TurboQuant: 2, 3, 4, 8 or 16 ascending entries
  std::span<const float> signs;       // kHadamard: [cols], each +1 or -1

  int64_t scale_rows() const { return (rows + block_rows - 1) / block_rows; }
  int64_t scale_cols() const { return (cols + format.group - 1) / format.group; }
  int64_t scale_bytes() const;    // of the scales (and of the biases); 0: the codec has none
  int64_t payload_bytes() const;  // of one row of `data`; row_bytes when rows are dense
  int64_t stored_bytes() const;   // all parts, as in the file
};

}  // namespace tq
