// SHA-256 (FIPS 180-4): names for contents that nobody can make collide on purpose. Small inputs;
// for speed alone there is xxHash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tq {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  // Little-endian, whatever the machine.
  void AddWord(uint64_t value);
  // Requires: called once, nothing added afterwards.
  Sha256Digest Finish();

 private:
  void AddBlock(const std::byte* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_ = {};
  uint64_t size_ = 0;
};

}  // namespace tq
