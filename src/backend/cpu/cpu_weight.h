// CpuWeight: a matrix as the CPU kernels read it, one copy in huge pages. Nothing points into the
// stored bytes it was made from.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/int_matmul.h"
#include "backend/cpu/repack.h"
#include "base/threads.h"
#include "codec/grid.h"
#include "codec/hadamard.h"
#include "codec/turbo_quant.h"

namespace tq {

// Memory for weights: huge pages shared by neighbours, so that small matrices do not waste one
// each.
class WeightArena {
 public:
  struct Block {
    std::shared_ptr<const Buffer> owner;
    std::byte* data = nullptr;  // 64-byte aligned
  };
  // Errors: kOutOfMemory.
  Result<Block> Allocate(size_t bytes);
  // The signs of a matrix; those of neighbours that have the same (experts of a stack) are one.
  std::shared_ptr<const std::vector<float>> ShareSigns(std::span<const float> signs);

 private:
  static constexpr size_t kRecentSigns = 8;
  std::vector<std::shared_ptr<const std::vector<float>>> recent_signs_;
  std::shared_ptr<const Buffer> chunk_;
  size_t used_ = 0;
};

class CpuWeight : public Weight {
 public:
  enum class Layout : uint8_t {
    kFloatTiles,  // f32, f16, bf16 as they are, tile16
    kCodeTiles,   // TurboQuant codes and scales, tile16 (repack.h)
    kGridTiles,   // int8 activations: codes and scales of a grid, tile16
    kBlocks,      // stored bytes as they are; 16 rows at a time are decoded to f32 when used
  };
  // Errors: kOutOfMemory. `stored` has passed CheckStoredMatrix.
  static Result<std::unique_ptr<CpuWeight>> Make(const StoredMatrix& stored,
                                                 ActivationMode activations, const FloatOps& ops,
                                                 WeightArena& arena, ThreadPool& pool);
  // For plans: without memory; values are not read.
  static std::unique_ptr<CpuWeight> MakeSized(const StoredMatrix& stored,
                                              ActivationMode activations, WeightArena& arena);

  int64_t bytes() const override { return bytes_; }
  const char* kernel() const override;

  Layout layout() const { return layout_; }
  // Multiplies int8 activations.
  bool integer() const {
    return layout_ == Layout::kGridTiles ||
           (layout_ == Layout::kCodeTiles && activations_ == ActivationMode::kInt8);
  }
  int group() const { return layout_ == Layout::kGridTiles ? grid_->group : format().group; }
  int64_t num_groups() const { return cols() / group(); }
  int64_t num_tiles() const { return (rows() + kTileRows - 1) / kTileRows; }
  int64_t tile_bytes() const { return bytes_ / num_tiles(); }

  bool rotated() const { return format().transform == Transform::kHadamard; }
  // Equal pointers mean equal signs, not the other way round.
  const float* signs() const { return signs_->data(); }
  const HadamardBlock& hadamard() const { return hadamard_; }

  // kFloatTiles.
  FloatType float_type() const { return float_type_; }
  const std::byte* tiles() const { return block_.data; }
  // kCodeTiles, kGridTiles.
  int layout_bits() const { return layout_bits_; }
  const std::byte* codes() const { return block_.data; }
  const IntegerCodebook& integers() const { return integers_; }
  // Columns per int8 scale of the activation.
  int64_t activation_block() const {
    if (rotated()) return 256;
    return layout_ == Layout::kGridTiles ? std::max(group(), kMinGridBlock) : group();
  }
  // kCodeTiles.
  const uint16_t* scales() const { return scales_; }  // f16 [tiles][K / group][16]
  const float* codebook() const { return codebook_.data(); }
  // kGridTiles.
  const Grid& grid() const { return *grid_; }
  const GridScales& grid_scales() const { return grid_scales_; }
  // kBlocks.
  const StoredMatrix& blocks() const { return blocks_; }

  // out[K]: one row in the stored (maybe rotated) basis; not for kFloatTiles.
  void DecodeRow(int64_t row, float* out) const;

 private:
  CpuWeight(const StoredMatrix& stored, ActivationMode activations, WeightArena& arena);
  void SetBytes(const StoredMatrix& stored);
  Status Allocate(WeightArena& arena);
  void PlaceGridScales(std::byte* at);
  void Fill(const StoredMatrix& stored, const FloatOps& ops, ThreadPool& pool);
  void FillBlocks(const StoredMatrix& stored, ThreadPool& pool);
  void FillTile(const StoredMatrix& stored, const FloatOps& ops, int64_t tile);
  GridTile TileOf(int64_t tile) const;
  int64_t code_bytes() const { return num_tiles() * CodeTileBytes(layout_bits_, cols()); }
  int64_t base_bytes() const;  // of one tile's bases of a grid
  void DecodeGridRow(int64_t row, float* out) const;
  int64_t element_bytes() const { return float_type_ == FloatType::kF32 ? 4 : 2; }

  ActivationMode activations_;
  Layout layout_ = Layout::kBlocks;
  FloatType float_type_ = FloatType::kF32;
  int layout_bits_ = 0;
  int64_t bytes_ = 0;
  WeightArena::Block block_;
  uint16_t* scales_ = nullptr;
  std::shared_ptr<const std::vector<float>> signs_;
  HadamardBlock hadamard_;
  std::array<float, 16> codebook_{};
  IntegerCodebook integers_;
  std::optional<Grid> grid_;
  GridTile first_tile_{};     // where the scales of tile 0 are
  GridScales grid_scales_{};  // the same, as kernels want it
  StoredMatrix blocks_;
};

}  // namespace tq
