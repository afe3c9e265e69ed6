// Signs of the rotation: Threefry-2x32 words (20 rounds) keyed by the layer seed, and the seed
// itself.
#include <array>
#include <bit>

#include "codec/hadamard.h"
#include "codec/qjl.h"

namespace tq {
namespace {

using Pair = std::array<uint32_t, 2>;

constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
constexpr uint32_t kKeyParity = 0x1BD11BDAu;
// The reference draws u = f32(word) / 2^32 and takes -1 for u < 0.5: rounding to f32 moves the last
// words below 2^31 up to 0.5.
constexpr uint32_t kFirstPositiveWord = 0x7FFFFFC0u;
// The residual's signs are draws of a Bernoulli(1/2): +1 up to this word.
constexpr uint32_t kLastPositiveQjlWord = 0x80000080u;
constexpr uint64_t kQjlSeed = 137;

Pair Threefry(const Pair& key, Pair counter) {
  const uint32_t schedule[3] = {key[0], key[1], key[0] ^ key[1] ^ kKeyParity};
  uint32_t a = counter[0] + schedule[0];
  uint32_t b = counter[1] + schedule[1];
  for (uint32_t g = 0; g < 5; ++g) {
    for (int rotation : kRotations[g % 2]) {
      a += b;
      b = std::rotl(b, rotation) ^ a;
    }
    a += schedule[(g + 1) % 3];
    b += schedule[(g + 2) % 3] + g + 1;
  }
  return {a, b};
}

float SignOf(uint32_t word) { return word < kFirstPositiveWord ? -1.0f : 1.0f; }
float QjlSignOf(uint32_t word) { return word <= kLastPositiveQjlWord ? 1.0f : -1.0f; }

template <float (*kSign)(uint32_t)>
std::vector<float> DrawSigns(uint64_t seed, int64_t n) {
  const Pair key = {static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(seed)};
  std::vector<float> signs(static_cast<size_t>(n));
  const int64_t half = n / 2;
  const int64_t odd = n % 2;
  for (int64_t i = 0; i < half; ++i) {
    const Pair words =
        Threefry(key, {static_cast<uint32_t>(i), static_cast<uint32_t>(i + half + odd)});
    signs[i] = kSign(words[0]);
    signs[i + half + odd] = kSign(words[1]);
  }
  if (odd != 0) signs[half] = kSign(Threefry(key, {static_cast<uint32_t>(half), 0})[0]);
  return signs;
}

}  // namespace

std::vector<float> TurboQuantSigns(uint64_t seed, int64_t n) { return DrawSigns<SignOf>(seed, n); }

std::vector<float> QjlSigns(int64_t n) { return DrawSigns<QjlSignOf>(kQjlSeed, n); }

uint32_t Crc32(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

uint64_t TurboQuantLayerSeed(uint64_t rotation_seed, std::string_view module_path) {
  return rotation_seed + (Crc32(module_path) & 0x7FFFFFFFu);
}

}  // namespace tq
