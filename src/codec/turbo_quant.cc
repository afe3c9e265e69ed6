#include "codec/turbo_quant.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr const char* kBadEntries = "a codebook has 2, 3, 4, 8 or 16 entries";

// Digits of 0 .. 242 in base 3, least significant first (three bytes of padding each).
constexpr int kTritsPerLookup = 5;
constexpr uint32_t kLookupBase = 243;
constexpr auto kTritDigits = [] {
  std::array<std::array<uint8_t, 8>, kLookupBase> table{};
  for (uint32_t value = 0; value < kLookupBase; ++value) {
    uint32_t rest = value;
    for (int i = 0; i < kTritsPerLookup; ++i, rest /= 3) {
      table[value][i] = static_cast<uint8_t>(rest % 3);
    }
  }
  return table;
}();

template <int kBits>
void UnpackWord(uint32_t word, uint8_t* out) {
  constexpr uint32_t kMask = (1u << kBits) - 1u;
  for (int i = 0; i < 32 / kBits; ++i) out[i] = static_cast<uint8_t>(word >> (i * kBits) & kMask);
}

// Any 32-bit pattern gives digits 0..2: a damaged word cannot leave the codebook.
void UnpackTritWord(uint32_t word, uint8_t* out) {
  for (int i = 0; i < 20; i += kTritsPerLookup, word /= kLookupBase) {
    std::copy_n(kTritDigits[word % kLookupBase].data(), kTritsPerLookup, out + i);
  }
}

uint32_t LoadWord(const std::byte* row, int64_t index) {
  uint32_t word;  // tensors start at any byte of a file
  std::memcpy(&word, row + index * 4, 4);
  return word;
}

// Codes of columns [col, col + n) of a row; the first and the last word may be needed in part.
template <int kPerWord, void (*kUnpack)(uint32_t, uint8_t*)>
void UnpackRow(const std::byte* row, int64_t col, int64_t n, uint8_t* out) {
  uint8_t part[kPerWord];
  int64_t word = col / kPerWord;
  int64_t done = 0;
  if (const int64_t skip = col % kPerWord; skip != 0 && n > 0) {
    kUnpack(LoadWord(row, word++), part);
    done = std::min(n, kPerWord - skip);
    std::copy_n(part + skip, done, out);
  }
  for (; n - done >= kPerWord; done += kPerWord) kUnpack(LoadWord(row, word++), out + done);
  if (done < n) {
    kUnpack(LoadWord(row, word), part);
    std::copy_n(part, n - done, out + done);
  }
}

}  // namespace

int TurboQuantValuesPerWord(int codebook_entries) {
  switch (codebook_entries) {
    case 2:
      return 32;
    case 3:
      return 20;
    case 4:
      return 16;
    case 8:
      return 10;
    case 16:
      return 8;
    default:
      break;
  }
  CheckFailed(__FILE__, __LINE__, kBadEntries);
}

void TurboQuant::DecodeCodes(const StoredMatrix& m, int64_t row, int64_t col, int64_t n,
                             uint8_t* out) {
  TQ_DCHECK(row >= 0 && row < m.rows && col >= 0 && n >= 0 && col + n <= m.cols);
  const std::byte* words = m.data + row * m.row_bytes;
  switch (m.codebook.size()) {
    case 2:
      return UnpackRow<32, UnpackWord<1>>(words, col, n, out);
    case 3:
      return UnpackRow<20, UnpackTritWord>(words, col, n, out);
    case 4:
      return UnpackRow<16, UnpackWord<2>>(words, col, n, out);
    case 8:
      return UnpackRow<10, UnpackWord<3>>(words, col, n, out);
    case 16:
      return UnpackRow<8, UnpackWord<4>>(words, col, n, out);
    default:
      CheckFailed(__FILE__, __LINE__, kBadEntries);
  }
}

void TurboQuant::DecodeRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out) {
  constexpr int64_t kChunk = 256;
  const int64_t group = m.format.group;
  const std::byte* scales = m.scales + row * (m.cols / group) * 2;
  uint8_t codes[kChunk];
  for (int64_t done = 0; done < n;) {
    const int64_t column = col + done;
    const int64_t in_group = group - column % group;
    const int64_t count = std::min({n - done, in_group, kChunk});
    DecodeCodes(m, row, column, count, codes);
    uint16_t bits;
    std::memcpy(&bits, scales + column / group * 2, 2);
    const float scale = F16ToF32(bits);
    for (int64_t i = 0; i < count; ++i) out[done + i] = m.codebook[codes[i]] * scale;
    done += count;
  }
}

}  // namespace tq
