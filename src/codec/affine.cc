#include "codec/affine.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "codec/group_scales.h"

namespace tq {
namespace {

template <int kBits>
uint32_t CodeAt(const std::byte* row, int64_t col) {
  const int64_t bit = col * kBits;
  const int shift = static_cast<int>(bit % 8);
  auto bits = static_cast<uint32_t>(row[bit / 8]);
  if (shift + kBits > 8) bits |= static_cast<uint32_t>(row[bit / 8 + 1]) << 8;
  return bits >> shift & ((1u << kBits) - 1u);
}

// Codes of columns [col, col + n): eight of them are kBits whole bytes.
template <int kBits, typename Out>
void Unpack(const std::byte* row, int64_t col, int64_t n, Out* out) {
  int64_t i = 0;
  for (; i < n && (col + i) % 8 != 0; ++i) out[i] = static_cast<Out>(CodeAt<kBits>(row, col + i));
  for (; i + 8 <= n; i += 8) {
    uint64_t bits = 0;
    std::memcpy(&bits, row + (col + i) / 8 * kBits, kBits);
    for (int j = 0; j < 8; ++j, bits >>= kBits) {
      out[i + j] = static_cast<Out>(bits & ((1u << kBits) - 1u));
    }
  }
  for (; i < n; ++i) out[i] = static_cast<Out>(CodeAt<kBits>(row, col + i));
}

template <typename Out>
void UnpackRow(int bits, const std::byte* row, int64_t col, int64_t n, Out* out) {
  switch (bits) {
    case 2:
      return Unpack<2>(row, col, n, out);
    case 3:
      return Unpack<3>(row, col, n, out);
    case 4:
      return Unpack<4>(row, col, n, out);
    case 5:
      return Unpack<5>(row, col, n, out);
    case 6:
      return Unpack<6>(row, col, n, out);
    case 8:
      return Unpack<8>(row, col, n, out);
    default:
      break;
  }
  CheckFailed(__FILE__, __LINE__, "affine codes have 2, 3, 4, 5, 6 or 8 bits");
}

}  // namespace

void Affine::DecodeCodes(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, uint8_t* out) {
  UnpackRow(m.format.bits, m.data + row * m.row_bytes, col, n, out);
}

void Affine::DecodeRow(const StoredMatrix& m, int64_t row, int64_t col, int64_t n, float* out) {
  UnpackRow(m.format.bits, m.data + row * m.row_bytes, col, n, out);
  const float middle = static_cast<float>(1 << (m.format.bits - 1));
  for (int64_t i = 0; i < n;) {
    const int64_t index = ScaleIndex(m, row, col + i);
    const float scale = LoadScale(m.scales, m.scale_type, index);
    const int64_t end = std::min(n, i + m.format.group - (col + i) % m.format.group);
    if (m.biases == nullptr) {
      for (; i < end; ++i) out[i] = scale * (out[i] - middle);
    } else {
      const float bias = LoadScale(m.biases, m.scale_type, index);
      for (; i < end; ++i) out[i] = scale * out[i] + bias;
    }
  }
}

}  // namespace tq
