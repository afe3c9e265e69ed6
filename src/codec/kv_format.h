// How keys and values are kept in the cache, and the codes of the packed formats: rotated vectors
// in groups, one f16 scale each. Not here: where codes lie in a page (backend/kv_layout.h).
// docs/kv-cache.md has the formats' figures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tq {

enum class KvFormat : uint8_t {
  kF16,
  kF32,
  kBf16,
  // The packed ones. int8: code - 128 times the scale. The others: the Lloyd-Max codebook of so
  // many bits.
  kInt8,
  kTq2,
  kTq3,
  kTq4,
  kTq5,
  kTq6,
  kTq7,
  kTq8,
};

inline bool KvIsPacked(KvFormat format) { return format >= KvFormat::kInt8; }
// Bits of a value, without scales.
int KvBits(KvFormat format);
// "f16", "int8", "tq4".
const char* KvFormatName(KvFormat format);
// Also a number of bits: "2" to "8", where 8 is int8 and 16 is f16.
std::optional<KvFormat> KvFormatFromName(std::string_view name);

// What a cache keeps, for every layer that has keys and values.
struct KvSettings {
  KvFormat k = KvFormat::kF16;
  KvFormat v = KvFormat::kF16;
  // Of the first min_tokens positions, rounded up to whole pages, and of the keys that only choose
  // positions (indexers): f16 or f32.
  KvFormat exact = KvFormat::kF16;
  int64_t min_tokens = 0;
  int group_size = 64;  // 16, 32, 64 or 128

  KvSettings() = default;
  // Nothing packed: kF16 or kF32 for everything.
  KvSettings(KvFormat both) : k(both), v(both), exact(both) {}  // NOLINT: a format is a setting
  bool operator==(const KvSettings&) const = default;
  bool packed() const { return KvIsPacked(k) || KvIsPacked(v); }
};

// "f16", "K4/V3", "K8/V3 group 32 first 128 f16", "K:bf16/V:tq8": what fingerprints and tables call
// it.
std::string KvSettingsText(const KvSettings& settings);

// "K4/V3", "4/3", "f16", "int8", "tq8/4" with the other settings of `base`.
// Errors: kInvalidArgument naming the piece.
Result<KvSettings> ParseKvSettings(std::string_view text, const KvSettings& base);

// The group of a vector of `dim` values: group_size or dim, halved until it divides dim.
int KvGroup(int group_size, int dim);

// Seeds of the signs (TurboQuantSigns over the rotated vector).
inline constexpr uint64_t kKvKeySeed = 42;
inline constexpr uint64_t kKvValueSeed = 43;

// The codebook of 2 .. 8 bits: values as stored (f16), ascending, and the boundaries between them.
struct KvCodebook {
  std::vector<float> stored;
  std::vector<float> boundaries;
};
const KvCodebook& KvCodebookOf(int bits);

enum class KvScale : uint8_t {
  kRms,     // the published cache's
  kSearch,  // 2 - 4 bits: the best of 12 around it. int8, 5 - 8 bits: as kRms
};

// codes[x.size()], scales[x.size() / group] (f16 bits) of a rotated vector. format is packed. The
// scale of int8 is max / 127. A scale beyond f16 becomes its largest finite number.
void KvEncode(KvFormat format, KvScale scale, std::span<const float> x, int group, uint8_t* codes,
              uint16_t* scales);

// What the codes 0 .. 2^bits - 1 stand for, to be multiplied by the scale.
std::span<const float> KvUnits(KvFormat format);

}  // namespace tq
