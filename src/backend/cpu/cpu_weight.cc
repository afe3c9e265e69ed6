#include "backend/cpu/cpu_weight.h"

#include <cstring>
#include <utility>

#include "backend/matrix_check.h"
#include "base/mapped_pages.h"
#include "codec/codec.h"
#include "codec/group_scales.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr size_t kAlign = 64;
// Address space, committed when touched. Long chunks: the last huge page of each is used in part.
constexpr size_t kChunkBytes = size_t{1} << 30;
// Stored bytes that a thread lays out before it lets go of them.
constexpr int64_t kSourceBytes = int64_t{1} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// What is left over at the end of a thread's range goes when the whole tensor does.
void DropSource(const StoredMatrix& stored, int64_t tile_begin, int64_t tile_end) {
  const int64_t first = tile_begin * kTileRows;
  const int64_t rows = std::min(tile_end * kTileRows, stored.rows) - first;
  // The last row may end before row_bytes do.
  const int64_t bytes = (rows - 1) * stored.row_bytes + stored.payload_bytes();
  DropMappedPages({stored.data + first * stored.row_bytes, static_cast<size_t>(bytes)});
}

}  // namespace

Result<WeightArena::Block> WeightArena::Allocate(size_t bytes) {
  const size_t needed = RoundUp(bytes, kAlign);
  if (chunk_ == nullptr || chunk_->size() - used_ < needed) {
    Result<Buffer> buffer = Buffer::Allocate(std::max(needed, kChunkBytes), /*huge_pages=*/true);
    // Systems that count address space as memory may have just enough.
    if (!buffer.ok()) buffer = Buffer::Allocate(needed, /*huge_pages=*/true);
    TQ_RETURN_IF_ERROR(buffer.status());
    chunk_ = std::make_shared<const Buffer>(std::move(buffer).value());
    used_ = 0;
  }
  Block block{chunk_, chunk_->data() + used_};
  used_ += needed;
  return block;
}

std::shared_ptr<const std::vector<float>> WeightArena::ShareSigns(std::span<const float> signs) {
  for (const auto& recent : recent_signs_) {
    if (std::equal(recent->begin(), recent->end(), signs.begin(), signs.end())) return recent;
  }
  if (recent_signs_.size() == kRecentSigns) recent_signs_.erase(recent_signs_.begin());
  recent_signs_.push_back(std::make_shared<const std::vector<float>>(signs.begin(), signs.end()));
  return recent_signs_.back();
}

CpuWeight::CpuWeight(const StoredMatrix& stored, ActivationMode activations, WeightArena& arena)
    : Weight(stored.format, stored.rows, stored.cols),
      activations_(activations),
      signs_(arena.ShareSigns(stored.signs)),
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
  } else if (activations == ActivationMode::kInt8) {
    grid_ = GridOf(stored);
    if (!grid_) return;
    layout_ = Layout::kGridTiles;
    layout_bits_ = LayoutBits(*grid_);
    integers_ = {.integers = grid_->integers, .entries = 16, .step = 1.0f};
  }
}

Result<std::unique_ptr<CpuWeight>> CpuWeight::Make(const StoredMatrix& stored,
                                                   ActivationMode activations, const FloatOps& ops,
                                                   WeightArena& arena, ThreadPool& pool) {
  std::unique_ptr<CpuWeight> weight = MakeSized(stored, activations, arena);
  TQ_RETURN_IF_ERROR(weight->Allocate(arena));
  weight->Fill(stored, ops, pool);
  return weight;
}

std::unique_ptr<CpuWeight> CpuWeight::MakeSized(const StoredMatrix& stored,
                                                ActivationMode activations, WeightArena& arena) {
  std::unique_ptr<CpuWeight> weight(new CpuWeight(stored, activations, arena));
  weight->SetBytes(stored);
  return weight;
}

void CpuWeight::SetBytes(const StoredMatrix& stored) {
  switch (layout_) {
    case Layout::kFloatTiles:
      bytes_ = num_tiles() * FloatTileBytes(float_type_, cols());
      break;
    case Layout::kCodeTiles:
      bytes_ = code_bytes() + num_tiles() * num_groups() * kTileRows * 2;
      break;
    case Layout::kGridTiles: {
      const int64_t factor_bytes = grid_->has_factors() ? num_groups() * kTileRows : 0;
      const int64_t kinds = grid_->has_min ? 2 : 1;
      bytes_ = code_bytes() + num_tiles() * kinds * (base_bytes() + factor_bytes);
      break;
    }
    case Layout::kBlocks:
      bytes_ = stored.rows * stored.payload_bytes() +
               (stored.biases != nullptr ? 2 : 1) * stored.scale_bytes();
      break;
  }
}

Status CpuWeight::Allocate(WeightArena& arena) {
  TQ_ASSIGN_OR_RETURN(block_, arena.Allocate(static_cast<size_t>(bytes_)));
  if (layout_ == Layout::kCodeTiles) {
    scales_ = reinterpret_cast<uint16_t*>(block_.data + code_bytes());
  }
  if (layout_ == Layout::kGridTiles) PlaceGridScales(block_.data + code_bytes());
  return Status::Ok();
}

int64_t CpuWeight::base_bytes() const {
  return num_groups() / grid_->base_groups * kTileRows * (grid_->base_type == DType::kF32 ? 4 : 2);
}

void CpuWeight::PlaceGridScales(std::byte* at) {
  const auto take = [&at](int64_t bytes) { return std::exchange(at, at + bytes); };
  first_tile_.bases = take(num_tiles() * base_bytes());
  if (grid_->has_min) first_tile_.min_bases = take(num_tiles() * base_bytes());
  const int64_t factor_bytes = num_tiles() * num_groups() * kTileRows;
  if (grid_->has_factors()) {
    first_tile_.factors = reinterpret_cast<int8_t*>(take(factor_bytes));
    if (grid_->has_min) first_tile_.min_factors = reinterpret_cast<int8_t*>(take(factor_bytes));
  }
  grid_scales_ = {.type = grid_->base_type == DType::kF32   ? GridScaleType::kF32
                          : grid_->base_type == DType::kF16 ? GridScaleType::kF16
                                                            : GridScaleType::kBf16,
                  .bases = first_tile_.bases,
                  .min_bases = first_tile_.min_bases,
                  .factors = first_tile_.factors,
                  .min_factors = first_tile_.min_factors,
                  .base_groups = grid_->base_groups};
}

GridTile CpuWeight::TileOf(int64_t tile) const {
  const auto at = [tile](auto* first, int64_t stride) {
    return first == nullptr ? nullptr : first + tile * stride;
  };
  const int64_t factors = num_groups() * kTileRows;
  return {at(first_tile_.bases, base_bytes()), at(first_tile_.min_bases, base_bytes()),
          at(first_tile_.factors, factors), at(first_tile_.min_factors, factors)};
}

void CpuWeight::FillTile(const StoredMatrix& stored, const FloatOps& ops, int64_t tile) {
  switch (layout_) {
    case Layout::kFloatTiles:
      return RepackFloatTile(stored, element_bytes(), tile,
                             block_.data + tile * FloatTileBytes(float_type_, cols()), &ops);
    case Layout::kCodeTiles:
      return RepackCodeTile(stored, layout_bits_, tile,
                            block_.data + tile * CodeTileBytes(layout_bits_, cols()),
                            scales_ + tile * num_groups() * kTileRows, &ops);
    case Layout::kGridTiles:
      return RepackGridTile(stored, *grid_, tile,
                            block_.data + tile * CodeTileBytes(layout_bits_, cols()), TileOf(tile),
                            &ops);
    case Layout::kBlocks:
      break;
  }
}

void CpuWeight::Fill(const StoredMatrix& stored, const FloatOps& ops, ThreadPool& pool) {
  if (layout_ == Layout::kBlocks) return FillBlocks(stored, pool);
  const int64_t at_once =
      std::max<int64_t>(kSourceBytes / std::max<int64_t>(kTileRows * stored.row_bytes, 1), 1);
  pool.ParallelFor(num_tiles(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t tile = begin; tile < end; ++tile) {
      FillTile(stored, ops, tile);
      const int64_t done = tile + 1 - begin;
      if (done % at_once == 0) DropSource(stored, tile + 1 - at_once, tile + 1);
    }
  });
}

void CpuWeight::FillBlocks(const StoredMatrix& stored, ThreadPool& pool) {
  blocks_ = stored;
  blocks_.data = block_.data;
  blocks_.row_bytes = stored.payload_bytes();
  blocks_.signs = *signs_;
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
}

const char* CpuWeight::kernel() const {
  if (layout_ == Layout::kFloatTiles) return "tile16 float";
  if (layout_ == Layout::kBlocks) return "decode to f32 panel";
  if (!integer()) return "tile16 codes to f32 panel";
  return layout_bits_ == 2   ? "tile16 int8 2-bit"
         : layout_bits_ == 3 ? "tile16 int8 3-bit"
         : layout_bits_ == 4 ? "tile16 int8 4-bit"
                             : "tile16 int8 8-bit";
}

void CpuWeight::DecodeGridRow(int64_t row, float* out) const {
  std::vector<uint8_t> row_codes(static_cast<size_t>(cols()));
  UnpackCodeRow(codes() + row / kTileRows * CodeTileBytes(layout_bits_, cols()), layout_bits_,
                row % kTileRows, 0, cols(), row_codes.data());
  const GridTile tile = TileOf(row / kTileRows);
  const auto value_of = [&](const std::byte* bases, const int8_t* factors, int64_t g) {
    const float base =
        LoadScale(bases, grid_->base_type, g / grid_->base_groups * kTileRows + row % kTileRows);
    return factors == nullptr ? base
                              : base * static_cast<float>(factors[g * kTileRows + row % kTileRows]);
  };
  for (int64_t g = 0; g < num_groups(); ++g) {
    const float scale = value_of(tile.bases, tile.factors, g);
    const float min = grid_->has_min ? value_of(tile.min_bases, tile.min_factors, g) : 0.0f;
    for (int64_t k = g * grid_->group; k < (g + 1) * grid_->group; ++k) {
      const float value =
          scale * static_cast<float>(grid_->Integer(row_codes[static_cast<size_t>(k)]));
      out[k] = grid_->has_min ? value + min : value;
    }
  }
}

void CpuWeight::DecodeRow(int64_t row, float* out) const {
  if (layout_ == Layout::kBlocks) {
    tq::DecodeRow(blocks_, row, 0, cols(), out);
    return;
  }
  if (layout_ == Layout::kGridTiles) return DecodeGridRow(row, out);
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
