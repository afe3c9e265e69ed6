#include "backend/cpu/cpu_weight.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/int_matmul.h"
#include "backend/cpu/repack.h"
#include "backend/matrix_check.h"
#include "codec/codec.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kChunkBytes = size_t{64} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Result<WeightArena::Block> WeightArena::Allocate(size_t bytes) {
  const size_t needed = RoundUp(bytes, kAlign);
  if (chunk_ == nullptr || chunk_->size() - used_ < needed) {
    TQ_ASSIGN_OR_RETURN(Buffer buffer,
                        Buffer::Allocate(std::max(needed, kChunkBytes), /*huge_pages=*/true));
    chunk_ = std::make_shared<const Buffer>(std::move(buffer));
    used_ = 0;
  }
  Block block{chunk_, chunk_->data() + used_};
  used_ += needed;
  return block;
}

CpuWeight::CpuWeight(const StoredMatrix& stored, ActivationMode activations)
    : Weight(stored.format, stored.rows, stored.cols),
      activations_(activations),
      signs_(stored.signs.begin(), stored.signs.end()),
      hadamard_(HadamardBlockFor(stored.cols)) {
  const CodecId codec = stored.format.codec;
  if (codec == CodecId::kTurboQuant) {
    layout_ = Layout::kCodeTiles;
    layout_bits_ = LayoutBits(static_cast<int>(stored.codebook.size()), stored.format.group);
    std::copy(stored.codebook.begin(), stored.codebook.end(), codebook_.begin());
    integers_ = FitIntegerCodebook(stored.codebook);
  } else if (codec == CodecId::kF32 || codec == CodecId::kF16 || codec == CodecId::kBf16) {
    layout_ = Layout::kFloatTiles;
    float_type_ = codec == CodecId::kF32   ? FloatType::kF32
                  : codec == CodecId::kF16 ? FloatType::kF16
                                           : FloatType::kBf16;
  }
}

Result<std::unique_ptr<CpuWeight>> CpuWeight::Make(const StoredMatrix& stored,
                                                   ActivationMode activations, WeightArena& arena,
                                                   ThreadPool& pool) {
  std::unique_ptr<CpuWeight> weight(new CpuWeight(stored, activations));
  if (weight->layout_ == Layout::kBlocks) {
    weight->bytes_ = stored.rows * stored.payload_bytes() +
                     (stored.biases != nullptr ? 2 : 1) * stored.scale_bytes();
  }
  TQ_RETURN_IF_ERROR(weight->Allocate(arena));
  weight->Fill(stored, pool);
  return weight;
}

Status CpuWeight::Allocate(WeightArena& arena) {
  int64_t code_bytes = 0;
  if (layout_ == Layout::kFloatTiles) bytes_ = num_tiles() * FloatTileBytes(float_type_, cols());
  if (layout_ == Layout::kCodeTiles) {
    code_bytes = num_tiles() * CodeTileBytes(layout_bits_, cols());
    bytes_ = code_bytes + num_tiles() * (cols() / format().group) * kTileRows * 2;
  }
  TQ_ASSIGN_OR_RETURN(block_, arena.Allocate(static_cast<size_t>(bytes_)));
  if (layout_ == Layout::kCodeTiles)
    scales_ = reinterpret_cast<uint16_t*>(block_.data + code_bytes);
  return Status::Ok();
}

void CpuWeight::Fill(const StoredMatrix& stored, ThreadPool& pool) {
  if (layout_ == Layout::kBlocks) {
    blocks_ = stored;
    blocks_.data = block_.data;
    blocks_.row_bytes = stored.payload_bytes();
    blocks_.signs = signs_;
    std::byte* scales = block_.data + stored.rows * blocks_.row_bytes;
    if (stored.scales != nullptr) {
      blocks_.scales = scales;
      scales = std::copy_n(stored.scales, stored.scale_bytes(), scales);
    }
    if (stored.biases != nullptr) {
      blocks_.biases = scales;
      std::copy_n(stored.biases, stored.scale_bytes(), scales);
    }
    pool.ParallelFor(stored.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        std::memcpy(block_.data + row * blocks_.row_bytes, stored.data + row * stored.row_bytes,
                    static_cast<size_t>(blocks_.row_bytes));
      }
    });
    return;
  }
  const int64_t scales_per_tile =
      layout_ == Layout::kCodeTiles ? cols() / format().group * kTileRows : 0;
  pool.ParallelFor(num_tiles(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t tile = begin; tile < end; ++tile) {
      if (layout_ == Layout::kFloatTiles) {
        RepackFloatTile(stored, element_bytes(), tile,
                        block_.data + tile * FloatTileBytes(float_type_, cols()));
      } else {
        RepackCodeTile(stored, layout_bits_, tile,
                       block_.data + tile * CodeTileBytes(layout_bits_, cols()),
                       scales_ + tile * scales_per_tile);
      }
    }
  });
}

const char* CpuWeight::kernel() const {
  if (layout_ == Layout::kFloatTiles) return "tile16 float";
  if (layout_ == Layout::kBlocks) return "decode to f32 panel";
  if (!integer()) return "tile16 codes to f32 panel";
  return layout_bits_ == 2   ? "tile16 int8 2-bit"
         : layout_bits_ == 3 ? "tile16 int8 3-bit"
                             : "tile16 int8 4-bit";
}

void CpuWeight::DecodeRow(int64_t row, float* out) const {
  if (layout_ == Layout::kBlocks) {
    tq::DecodeRow(blocks_, row, 0, cols(), out);
    return;
  }
  constexpr int64_t kPiece = 512;
  std::array<uint8_t, kPiece> piece;
  const int64_t tile = row / kTileRows;
  const int64_t group = format().group;
  const std::byte* tile_codes = codes() + tile * CodeTileBytes(layout_bits_, cols());
  const uint16_t* tile_scales = scales_ + tile * (cols() / group) * kTileRows + row % kTileRows;
  for (int64_t col = 0; col < cols(); col += kPiece) {
    const int64_t n = std::min(kPiece, cols() - col);
    UnpackCodeRow(tile_codes, layout_bits_, row % kTileRows, col, n, piece.data());
    for (int64_t k = 0; k < n; ++k) {
      out[col + k] = codebook_[piece[k]] * F16ToF32(tile_scales[(col + k) / group * kTileRows]);
    }
  }
}

}  // namespace tq
