// A counter-based random number: a pure function of (seed, position), so a draw depends neither on
// earlier draws nor on the batch, and speculation can redraw a position at will.
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace tq {

inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Counter (count, stream), key seed, all low word first; words 0 and 1 of the block.
inline uint64_t RandomWord(uint64_t seed, uint64_t count, uint32_t stream) {
  const std::array<uint32_t, 4> r =
      Philox4x32({static_cast<uint32_t>(count), static_cast<uint32_t>(count >> 32), stream, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return (uint64_t{r[1]} << 32) | r[0];
}

// Independent numbers of one position.
enum RandomStream : uint32_t { kDrawStream = 0, kXtcStream = 1, kSeedStream = 2 };

// Uniform in [0, 2^53).
inline uint64_t Uniform53(uint64_t seed, int64_t position, RandomStream stream = kDrawStream) {
  return RandomWord(seed, static_cast<uint64_t>(position), stream) >> 11;
}

// Uniform in [0, 1), a multiple of 2^-53.
inline double UniformAt(uint64_t seed, int64_t position, RandomStream stream = kDrawStream) {
  return static_cast<double>(Uniform53(seed, position, stream)) * 0x1.0p-53;
}

// The seed of answer `index` of a request that wants several: the seed itself for the first one.
inline uint64_t SeedOfAnswer(uint64_t seed, int64_t index) {
  return index == 0 ? seed : RandomWord(seed, static_cast<uint64_t>(index), kSeedStream);
}

// A new one each time, for a request that names none.
uint64_t FreshSeed();

}  // namespace tq
