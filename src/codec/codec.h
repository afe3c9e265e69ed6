// The codec table: what a format is called and how a piece of a row is decoded. The list is
// codec_list.inc; nothing else enumerates formats.
#pragma once

#include <span>
#include <string>

#include "codec/format.h"
#include "codec/grid.h"

namespace tq {

struct CodecInfo {
  CodecId id;
  const char* name;
  int block_values;
  int block_bytes;  // 0: parts are described by the format itself (TurboQuant)
  // out[n] = values at columns [col, col + n) of `row`, in the stored (maybe rotated) basis.
  void (*decode_row)(const StoredMatrix& matrix, int64_t row, int64_t col, int64_t n, float* out);
  // No value of these stored blocks is NaN or infinite.
  bool (*all_finite)(std::span<const std::byte> blocks);
  // Block formats that are grids (codec/grid.h), else null.
  const Grid* grid;
  void (*decode_grid)(const uint8_t* block, GridBlock& out);
};

std::span<const CodecInfo> AllCodecs();
const CodecInfo& GetCodec(CodecId id);

// "turboquant 3-bit g64 hadamard", "bf16", "q4_1".
std::string FormatName(const Format& format);
// The same, but knows trits: "turboquant trit g64 hadamard" (a Format calls them 2-bit).
std::string FormatName(const StoredMatrix& matrix);

inline void DecodeRow(const StoredMatrix& matrix, int64_t row, int64_t col, int64_t n, float* out) {
  GetCodec(matrix.format.codec).decode_row(matrix, row, col, n, out);
}

}  // namespace tq
