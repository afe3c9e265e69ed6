#include "backend/kv_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "codec/turbo_quant.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr int64_t kRows = 16;

// tile16: a unit is a run of whole 64-byte vectors (backend/cpu/repack.h draws it).
struct Unit {
  int64_t columns;
  int64_t bytes;
};
Unit UnitOf(int bits) { return bits == 3 ? Unit{32, 192} : Unit{32 / bits, 64}; }

uint32_t LoadFour(const void* p) {
  uint32_t four;
  std::memcpy(&four, p, 4);
  return four;
}
void StoreFour(std::byte* p, uint32_t four) { std::memcpy(p, &four, 4); }

// A row's codes of one unit: dword `row` of each vector.
void StoreUnit(const uint8_t* c, int bits, std::byte* dword) {
  const auto step = [c](int t) { return LoadFour(c + 4 * t); };
  if (bits != 3) {
    uint32_t word = 0;
    for (int t = 0; t < 8 / bits; ++t) word |= step(t) << (bits * t);
    StoreFour(dword, word);
    return;
  }
  const uint32_t spread = step(6) | step(7) << 3;
  for (int v = 0; v < 3; ++v) {
    const uint32_t own = step(2 * v) | step(2 * v + 1) << 3;
    StoreFour(dword + 64 * v, own | (spread >> (2 * v) & 0x03030303u) << 6);
  }
}

void LoadUnit(const std::byte* dword, int bits, uint8_t* c) {
  const auto put = [c](int t, uint32_t four) { std::memcpy(c + 4 * t, &four, 4); };
  if (bits != 3) {
    const uint32_t word = LoadFour(dword);
    const uint32_t mask = 0x01010101u * ((1u << bits) - 1u);
    for (int t = 0; t < 8 / bits; ++t) put(t, word >> (bits * t) & mask);
    return;
  }
  uint32_t spread = 0;
  for (int v = 0; v < 3; ++v) {
    const uint32_t word = LoadFour(dword + 64 * v);
    put(2 * v, word & 0x07070707u);
    put(2 * v + 1, word >> 3 & 0x07070707u);
    spread |= (word >> 6 & 0x03030303u) << (2 * v);
  }
  put(6, spread & 0x07070707u);
  put(7, spread >> 3 & 0x07070707u);
}

// Where column `col` of row 0 lies in its unit: bits [shift, shift + width) of a byte; the two last
// steps of a 3-bit unit are spread over three bytes.
struct ColumnPlace {
  int64_t byte;  // from the tile's begin
  int shift;
  int spread;  // -1, or the first bit in the 6-bit string
};
ColumnPlace PlaceOf(int bits, int64_t col) {
  const Unit unit = UnitOf(bits);
  const int64_t begin = col / unit.columns * unit.bytes;
  const int step = static_cast<int>(col % unit.columns / 4);
  const int64_t byte = begin + col % 4;
  if (bits != 3) return {byte, step * bits, -1};
  if (step < 6) return {byte + step / 2 * 64, step % 2 * 3, -1};
  return {byte, 0, (step - 6) * 3};
}

void PutBits(std::byte* p, int shift, int width, unsigned value) {
  const unsigned mask = ((1u << width) - 1u) << shift;
  const unsigned old = static_cast<unsigned>(*p);
  *p = static_cast<std::byte>((old & ~mask) | (value << shift & mask));
}

// One column of [dim / 16] tiles of 64 columns. Bits of other columns stay.
void StoreColumn(const KvTile& tile, std::byte* codes, int64_t col, const uint8_t* c) {
  const int bits = tile.layout_bits;
  const int64_t tile_bytes = kPageTokens * 2 * bits;
  const ColumnPlace place = PlaceOf(bits, col);
  for (int64_t d = 0; d < tile.dim; ++d) {
    std::byte* p = codes + d / kRows * tile_bytes + place.byte + d % kRows * 4;
    if (place.spread < 0) {
      PutBits(p, place.shift, bits, c[d]);
      continue;
    }
    for (int i = 0; i < 3; ++i) {
      const int at = place.spread + i;  // of the string: two bits in each vector
      PutBits(p + at / 2 * 64, 6 + at % 2, 1, static_cast<unsigned>(c[d]) >> i & 1u);
    }
  }
}

void LoadColumn(const KvTile& tile, const std::byte* codes, int64_t col, uint8_t* c) {
  const int bits = tile.layout_bits;
  const int64_t tile_bytes = kPageTokens * 2 * bits;
  const ColumnPlace place = PlaceOf(bits, col);
  for (int64_t d = 0; d < tile.dim; ++d) {
    const std::byte* p = codes + d / kRows * tile_bytes + place.byte + d % kRows * 4;
    if (place.spread < 0) {
      c[d] = static_cast<uint8_t>(static_cast<unsigned>(*p) >> place.shift & ((1u << bits) - 1u));
      continue;
    }
    unsigned value = 0;
    for (int i = 0; i < 3; ++i) {
      const int at = place.spread + i;
      value |= (static_cast<unsigned>(p[at / 2 * 64]) >> (6 + at % 2) & 1u) << i;
    }
    c[d] = static_cast<uint8_t>(value);
  }
}

void StoreBits(const uint8_t* c, int64_t n, int bits, std::byte* out) {
  uint32_t pending = 0;
  int count = 0;
  for (int64_t i = 0; i < n; ++i) {
    pending |= static_cast<uint32_t>(c[i]) << count;
    for (count += bits; count >= 8; count -= 8, pending >>= 8) {
      *out++ = static_cast<std::byte>(pending & 0xFFu);
    }
  }
  if (count > 0) *out = static_cast<std::byte>(pending & 0xFFu);
}

void LoadBits(const std::byte* in, int64_t n, int bits, uint8_t* c) {
  uint32_t pending = 0;
  int count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (count < bits) {
      pending |= static_cast<uint32_t>(*in++) << count;
      count += 8;
    }
    c[i] = static_cast<uint8_t>(pending & ((1u << bits) - 1u));
    pending >>= bits;
    count -= bits;
  }
}

// Byte offset of a group's scale.
int64_t ScaleAt(const KvTile& tile, int64_t slot, int64_t group) {
  if (tile.kind == KvTile::Kind::kCodeRows) return (slot * tile.num_groups() + group) * 2;
  if (tile.is_value) return (group * kPageTokens + slot) * 2;
  return ((slot / kRows * tile.num_groups() + group) * kRows + slot % kRows) * 2;
}

void StoreCodes(const KvTile& tile, std::byte* codes, int64_t slot, const uint8_t* c) {
  if (tile.kind == KvTile::Kind::kCodeRows) {
    StoreBits(c, tile.dim, tile.layout_bits, codes + slot * tile.code_row_bytes());
    return;
  }
  if (tile.is_value) return StoreColumn(tile, codes, slot, c);
  const Unit unit = UnitOf(tile.layout_bits);
  std::byte* p =
      codes + slot / kRows * (int64_t{2} * tile.dim * tile.layout_bits) + slot % kRows * 4;
  for (int64_t d = 0; d < tile.dim; d += unit.columns, p += unit.bytes) {
    StoreUnit(c + d, tile.layout_bits, p);
  }
}

int64_t FloatIndex(const KvTile& tile, int64_t slot, int64_t dim) {
  if (tile.is_value) return slot * tile.dim + dim;
  return (dim / 2 * kPageTokens + slot) * 2 + dim % 2;
}

void StoreFloat(KvFormat format, std::byte* bytes, int64_t index, float value) {
  if (format == KvFormat::kF32) {
    std::memcpy(bytes + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = format == KvFormat::kF16 ? F32ToF16(value) : F32ToBf16(value);
  std::memcpy(bytes + index * 2, &bits, 2);
}

float LoadFloat(KvFormat format, const std::byte* bytes, int64_t index) {
  if (format == KvFormat::kF32) {
    float value;
    std::memcpy(&value, bytes + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes + index * 2, 2);
  return format == KvFormat::kF16 ? F16ToF32(bits) : Bf16ToF32(bits);
}

}  // namespace

void StoreKvRow(const KvTile& tile, std::byte* bytes, int64_t slot, const float* row,
                KvRowWork& work) {
  if (tile.kind == KvTile::Kind::kFloats) {
    for (int64_t d = 0; d < tile.dim; ++d) {
      StoreFloat(tile.format, bytes, FloatIndex(tile, slot, d), row[d]);
    }
    return;
  }
  const auto dim = static_cast<size_t>(tile.dim);
  work.codes.resize(dim);
  work.scales.resize(static_cast<size_t>(tile.num_groups()));
  KvEncode(tile.format, KvScale::kSearch, {row, dim}, tile.group, work.codes.data(),
           work.scales.data());
  StoreKvCodes(tile, bytes, slot, work.codes.data(), work.scales.data());
}

void StoreKvCodes(const KvTile& tile, std::byte* bytes, int64_t slot, const uint8_t* codes,
                  const uint16_t* scales) {
  for (int64_t g = 0; g < tile.num_groups(); ++g) {
    std::memcpy(bytes + ScaleAt(tile, slot, g), scales + g, 2);
  }
  StoreCodes(tile, bytes + tile.scale_bytes(), slot, codes);
}

void LoadKvCodes(const KvTile& tile, const std::byte* bytes, int64_t slot, uint8_t* codes,
                 float* scales) {
  for (int64_t g = 0; g < tile.num_groups(); ++g) {
    uint16_t bits;
    std::memcpy(&bits, bytes + ScaleAt(tile, slot, g), 2);
    scales[g] = F16ToF32(bits);
  }
  const std::byte* in = bytes + tile.scale_bytes();
  if (tile.kind == KvTile::Kind::kCodeRows) {
    LoadBits(in + slot * tile.code_row_bytes(), tile.dim, tile.layout_bits, codes);
    return;
  }
  if (tile.is_value) return LoadColumn(tile, in, slot, codes);
  const Unit unit = UnitOf(tile.layout_bits);
  const std::byte* p =
      in + slot / kRows * (int64_t{2} * tile.dim * tile.layout_bits) + slot % kRows * 4;
  for (int64_t d = 0; d < tile.dim; d += unit.columns, p += unit.bytes) {
    LoadUnit(p, tile.layout_bits, codes + d);
  }
}

void LoadKvRow(const KvTile& tile, const std::byte* bytes, int64_t slot, uint8_t* codes,
               float* scales, float* out) {
  if (tile.kind == KvTile::Kind::kFloats) {
    for (int64_t d = 0; d < tile.dim; ++d) {
      out[d] = LoadFloat(tile.format, bytes, FloatIndex(tile, slot, d));
    }
    return;
  }
  LoadKvCodes(tile, bytes, slot, codes, scales);
  const std::span<const float> units = KvUnits(tile.format);
  for (int64_t g = 0; g < tile.num_groups(); ++g) {
    for (int64_t d = g * tile.group; d < (g + 1) * tile.group; ++d) {
      out[d] = units[codes[d]] * scales[g];
    }
  }
}

const KvRotation& KvRotations::OfKeys(const KvLayout& layout) {
  if (!KvIsPacked(layout.k_format())) return none_;
  if (layout.values != KvValues::kKeyPrefix) return Find(kKvKeySeed, layout.head_dim, 0);
  return Find(kKvKeySeed, layout.v_head_dim, layout.head_dim - layout.v_head_dim);
}

const KvRotation& KvRotations::OfValues(const KvLayout& layout) {
  if (!KvIsPacked(layout.v_format())) return none_;
  const bool own = layout.values == KvValues::kOwn;
  return Find(own ? kKvValueSeed : kKvKeySeed, layout.v_head_dim, 0);
}

const KvRotation& KvRotations::Find(uint64_t seed, int64_t first, int64_t second) {
  for (const auto& entry : entries_) {
    if (entry->seed == seed && entry->first == first && entry->second == second) {
      return entry->rotation;
    }
  }
  auto entry = std::make_unique<Entry>(Entry{seed, first, second, {}, {}});
  int64_t offset = 0;
  for (int i = 0; i < 2; ++i) {
    const int64_t dim = i == 0 ? first : second;
    if (dim == 0) continue;
    entry->signs[i] = TurboQuantSigns(seed, dim);
    entry->rotation.push_back({offset, dim, HadamardBlockFor(dim), entry->signs[i].data()});
    offset += dim;
  }
  entries_.push_back(std::move(entry));
  return entries_.back()->rotation;
}

void UnrotateKv(const KvRotation& rotation, float* x) {
  for (const KvRotationPart& part : rotation) {
    float* p = x + part.offset;
    HadamardInverse({p, static_cast<size_t>(part.dim)});
    for (int64_t i = 0; i < part.dim; ++i) p[i] = p[i] * part.signs[i];
  }
}

const KvIntegers& KvIntegersOf(KvFormat format) {
  static const std::array<KvIntegers, 3> all = [] {
    std::array<KvIntegers, 3> out;
    for (int bits = 2; bits <= 4; ++bits) {
      const IntegerCodebook fit = FitIntegerCodebook(KvCodebookOf(bits).stored);
      KvIntegers& integers = out[static_cast<size_t>(bits - 2)];
      std::copy(fit.integers.begin(), fit.integers.end(), integers.integers);
      integers.step = fit.step;
    }
    return out;
  }();
  static const KvIntegers bytes;
  if (format == KvFormat::kInt8) return bytes;
  TQ_CHECK(KvBits(format) <= 4);
  return all[static_cast<size_t>(KvBits(format) - 2)];
}

}  // namespace tq
