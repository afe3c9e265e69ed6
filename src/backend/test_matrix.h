// Random stored matrices of any format, for tests and benchmarks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "codec/codec.h"
#include "codec/turbo_quant.h"
#include "tensor/half.h"

namespace tq {

class TestMatrix {
 public:
  const StoredMatrix& stored() const { return stored_; }

  // entries: of the codebook (2, 3, 4, 8, 16).
  static TestMatrix Turbo(int entries, int group, Transform transform, int64_t rows, int64_t cols,
                          uint32_t seed) {
    TestMatrix m;
    std::mt19937 random(seed);
    m.data_.resize(static_cast<size_t>(rows * TurboQuantWords(entries, cols) * 4));
    m.FillData(random);
    m.scales_.resize(static_cast<size_t>(rows * (cols / group)));
    std::uniform_real_distribution<float> scale(0.005f, 0.05f);
    for (uint16_t& value : m.scales_) value = F32ToF16(scale(random));
    m.codebook_ = LloydMaxCodebook(entries).stored;
    if (transform == Transform::kHadamard) {
      m.signs_.resize(static_cast<size_t>(cols));
      for (float& sign : m.signs_) sign = random() % 2 == 0 ? 1.0f : -1.0f;
    }
    const int bits = entries == 3 ? 2 : static_cast<int>(std::lround(std::log2(entries)));
    m.stored_.format = {CodecId::kTurboQuant, bits, group, transform};
    m.stored_.row_bytes = TurboQuantWords(entries, cols) * 4;
    m.Finish(rows, cols);
    return m;
  }

  // cols: whole blocks of the codec.
  static TestMatrix Block(CodecId codec, int64_t rows, int64_t cols, uint32_t seed) {
    const CodecInfo& info = GetCodec(codec);
    TestMatrix m;
    std::mt19937 random(seed);
    m.stored_.format = {codec, 0, info.block_values, Transform::kNone};
    m.stored_.row_bytes = cols / info.block_values * info.block_bytes;
    m.data_.resize(static_cast<size_t>(rows * m.stored_.row_bytes));
    if (info.block_values == 1) {
      m.FillFloats(codec, random);
      m.Finish(rows, cols);
      return m;
    }
    m.FillData(random);
    m.Finish(rows, cols);
    std::vector<float> values(static_cast<size_t>(info.block_values));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; col += info.block_values) {
        std::byte* block =
            m.data_.data() + row * m.stored_.row_bytes + col / info.block_values * info.block_bytes;
        DecodeRow(m.stored_, row, col, info.block_values, values.data());
        // Random bytes may spell NaN, infinity or numbers whose products overflow.
        for (const float value : values) {
          if (!(std::fabs(value) < 1e4f))
            std::memset(block, 0, static_cast<size_t>(info.block_bytes));
        }
      }
    }
    return m;
  }

  // Codes with scales beside them: kAffine, kFp4 or kFp8. cols: whole groups.
  static TestMatrix Groups(const Format& format, DType scale_type, bool biases, int64_t block_rows,
                           int64_t rows, int64_t cols, uint32_t seed) {
    TestMatrix m;
    std::mt19937 random(seed);
    m.stored_.format = format;
    m.stored_.block_rows = block_rows;
    m.stored_.row_bytes = cols * format.bits / 8;
    m.data_.resize(static_cast<size_t>(rows * m.stored_.row_bytes));
    m.FillData(random);
    for (std::byte& byte : m.data_) {
      if (format.codec == CodecId::kFp8) byte &= std::byte{0xBF};  // no NaN
    }
    m.stored_.scale_type = scale_type;
    for (std::vector<std::byte>* part : {&m.scale_bytes_, &m.bias_bytes_}) {
      part->resize(static_cast<size_t>(rows * (cols / format.group)) * DTypeBytes(scale_type));
      for (size_t i = 0; i < part->size(); ++i) {
        // Small numbers in every type: high bytes of 0x3C to 0x3F, and 0x78 of e8m0.
        const bool high = (i + 1) % DTypeBytes(scale_type) == 0;
        const auto value = high ? 0x3C + random() % 4 : random() % 256;
        (*part)[i] = static_cast<std::byte>(scale_type == DType::kE8M0 ? 0x78 : value);
      }
    }
    m.stored_.scales = m.scale_bytes_.data();
    if (biases) m.stored_.biases = m.bias_bytes_.data();
    m.Finish(rows, cols);
    return m;
  }

  // The activation meets the matrix rotated, whatever its format.
  void SetRotated(uint32_t seed) {
    std::mt19937 random(seed);
    signs_.resize(static_cast<size_t>(stored_.cols));
    for (float& sign : signs_) sign = random() % 2 == 0 ? 1.0f : -1.0f;
    stored_.signs = signs_;
    stored_.format.transform = Transform::kHadamard;
  }

  void SetCodebook(std::vector<float> codebook) {
    codebook_ = std::move(codebook);
    stored_.codebook = codebook_;
  }

 private:
  void FillData(std::mt19937& random) {
    for (size_t i = 0; i < data_.size(); i += 4) {
      const uint32_t four = static_cast<uint32_t>(random());
      std::memcpy(data_.data() + i, &four, std::min<size_t>(4, data_.size() - i));
    }
  }
  // Sensible sizes: random bits would be denormal numbers half of the time, and slow.
  void FillFloats(CodecId codec, std::mt19937& random) {
    std::normal_distribution<float> normal;
    const size_t size = codec == CodecId::kF32 ? 4 : 2;
    for (size_t i = 0; i < data_.size(); i += size) {
      const float value = normal(random);
      const uint16_t half = codec == CodecId::kF16 ? F32ToF16(value) : F32ToBf16(value);
      if (size == 4) {
        std::memcpy(data_.data() + i, &value, 4);
      } else {
        std::memcpy(data_.data() + i, &half, 2);
      }
    }
  }
  void Finish(int64_t rows, int64_t cols) {
    stored_.rows = rows;
    stored_.cols = cols;
    stored_.data = data_.data();
    if (!scales_.empty()) stored_.scales = reinterpret_cast<const std::byte*>(scales_.data());
    stored_.codebook = codebook_;
    stored_.signs = signs_;
  }

  // Moves of vectors keep their memory, so stored_ stays right.
  StoredMatrix stored_;
  std::vector<std::byte> data_;
  std::vector<uint16_t> scales_;
  std::vector<std::byte> scale_bytes_;
  std::vector<std::byte> bias_bytes_;
  std::vector<float> codebook_;
  std::vector<float> signs_;
};

inline std::vector<float> RandomFloats(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace tq
