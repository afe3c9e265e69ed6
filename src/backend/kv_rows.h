// One token's row in a K or V tile: writing it and reading it back, in plain code. The backends'
// kernels read whole tiles; appending and everything that is not worth a kernel is here, so that
// all backends store the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/kv_layout.h"
#include "codec/hadamard.h"

namespace tq {

// Memory that is used again for every row.
struct KvRowWork {
  std::vector<uint8_t> codes;
  std::vector<uint16_t> scales;
  std::vector<float> row;
};

// row[tile.dim] (of a packed format: rotated) into slot 0 .. 63. Values of one tile share bytes:
// their tokens are stored by one thread.
void StoreKvRow(const KvTile& tile, std::byte* bytes, int64_t slot, const float* row,
                KvRowWork& work);

// The same for codes[dim] and f16 scales[num_groups()] of a packed format.
void StoreKvCodes(const KvTile& tile, std::byte* bytes, int64_t slot, const uint8_t* codes,
                  const uint16_t* scales);

// codes[dim] and scales[num_groups()] of a packed format.
void LoadKvCodes(const KvTile& tile, const std::byte* bytes, int64_t slot, uint8_t* codes,
                 float* scales);

// out[dim] as f32, whatever the format. codes, scales: memory for what LoadKvCodes gives.
void LoadKvRow(const KvTile& tile, const std::byte* bytes, int64_t slot, uint8_t* codes,
               float* scales, float* out);

// The rotation of a packed vector: parts that are rotated each on its own.
struct KvRotationPart {
  int64_t offset;
  int64_t dim;
  HadamardBlock block;
  const float* signs;  // [dim]
};
using KvRotation = std::vector<KvRotationPart>;

// Rotations by what they depend on, made when first asked for. Thread: one.
class KvRotations {
 public:
  // Empty where the format is not packed.
  const KvRotation& OfKeys(const KvLayout& layout);
  // Of values, and so, transposed, of attention's output.
  const KvRotation& OfValues(const KvLayout& layout);

 private:
  struct Entry {
    uint64_t seed;
    int64_t first;
    int64_t second;  // 0: one part
    std::vector<float> signs[2];
    KvRotation rotation;
  };
  const KvRotation& Find(uint64_t seed, int64_t first, int64_t second);
  std::vector<std::unique_ptr<Entry>> entries_;
  const KvRotation none_;
};

// x <- the inverse rotation of x: the transposed Hadamard, then the signs.
void UnrotateKv(const KvRotation& rotation, float* x);

// Integers that stand in for a format's values in the integer kernels: value ~ step * integer.
// int8's are code - 128 with step 1.
struct KvIntegers {
  int8_t integers[16] = {};
  float step = 1.0f;
};
const KvIntegers& KvIntegersOf(KvFormat format);

// Dims of a query that share an int8 scale.
inline constexpr int64_t kKvQueryBlock = 256;

// What weighted values are quantized to: codes 0 .. 255, of int8 values 0 .. 16383 in two halves of
// 7 bits.
inline float KvWeightRange(KvFormat format) {
  return format == KvFormat::kInt8 ? 16383.0f : 255.0f;
}

}  // namespace tq
