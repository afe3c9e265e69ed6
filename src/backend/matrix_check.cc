#include "backend/matrix_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "codec/codec.h"

namespace tq {
namespace {

// Rows, columns and bytes of one matrix stay far below this: products of two fit int64.
constexpr int64_t kMaxDimension = int64_t{1} << 31;

std::string Shape(const StoredMatrix& stored) {
  return "[" + std::to_string(stored.rows) + ", " + std::to_string(stored.cols) + "]";
}

bool IsOneOf(int64_t value, std::initializer_list<int64_t> allowed) {
  return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

Status CheckScales(const StoredMatrix& stored) {
  const int64_t groups_per_row = stored.cols / stored.format.group;
  for (int64_t i = 0; i < stored.rows * groups_per_row; ++i) {
    uint16_t bits;
    std::memcpy(&bits, stored.scales + i * 2, 2);
    if ((bits & 0x7C00u) == 0x7C00u) {
      return Corrupt("expected finite scales, found NaN or infinity at row " +
                     std::to_string(i / groups_per_row) + ", group " +
                     std::to_string(i % groups_per_row) + ": convert or download the model again");
    }
  }
  return Status::Ok();
}

Status CheckTurboQuant(const StoredMatrix& stored) {
  const Format& format = stored.format;
  if (!IsOneOf(format.group, {16, 32, 64, 128})) {
    return Unsupported("expected a group of 16, 32, 64 or 128, found " +
                       std::to_string(format.group));
  }
  if (!IsOneOf(static_cast<int64_t>(stored.codebook.size()), {2, 3, 4, 8, 16})) {
    return Unsupported("expected a codebook of 2, 3, 4, 8 or 16 entries, found " +
                       std::to_string(stored.codebook.size()));
  }
  if (stored.cols % format.group != 0) {
    return Corrupt("expected columns in whole groups of " + std::to_string(format.group) +
                   ", found " + Shape(stored));
  }
  if (stored.scales == nullptr) return Corrupt("expected scales beside the codes, found none");
  for (const float value : stored.codebook) {
    if (!std::isfinite(value))
      return Corrupt("expected a finite codebook, found NaN or infinity in it");
  }
  return CheckScales(stored);
}

// Codes with scales of their own; whoever read them has checked the values (weights/).
Status CheckGroups(const StoredMatrix& stored) {
  const Format& format = stored.format;
  if (stored.scales == nullptr) return Corrupt("expected scales beside the codes, found none");
  if (format.group < 1 || stored.block_rows < 1 || format.bits < 1 || format.bits > 8) {
    return Corrupt("expected codes of 1 to 8 bits in groups, found " + std::to_string(format.bits) +
                   " bits and groups of " + std::to_string(format.group));
  }
  return Status::Ok();
}

}  // namespace

Status CheckStoredMatrix(const StoredMatrix& stored) {
  const int64_t rows = stored.rows;
  const int64_t cols = stored.cols;
  if (rows < 1 || cols < 1 || rows > kMaxDimension || cols > kMaxDimension ||
      stored.data == nullptr) {
    return Corrupt("expected a matrix of 1 to 2^31 rows and columns with data, found " +
                   Shape(stored));
  }
  const CodecInfo& codec = GetCodec(stored.format.codec);
  if (cols % codec.block_values != 0) {
    return Corrupt("expected columns in whole blocks of " + std::to_string(codec.block_values) +
                   " (" + codec.name + "), found " + Shape(stored));
  }
  if (codec.block_bytes == 0) {
    TQ_RETURN_IF_ERROR(stored.format.codec == CodecId::kTurboQuant ? CheckTurboQuant(stored)
                                                                   : CheckGroups(stored));
  }
  if (stored.row_bytes < stored.payload_bytes()) {
    return Corrupt("expected rows of " + std::to_string(stored.payload_bytes()) + " bytes, found " +
                   std::to_string(stored.row_bytes) + " in a matrix " + Shape(stored));
  }
  if (stored.format.transform == Transform::kHadamard) {
    if (static_cast<int64_t>(stored.signs.size()) != cols) {
      return Corrupt("expected " + std::to_string(cols) + " signs, found " +
                     std::to_string(stored.signs.size()));
    }
    for (const float sign : stored.signs) {
      if (sign != 1.0f && sign != -1.0f) {
        return Corrupt("expected signs of +1 or -1, found " + std::to_string(sign));
      }
    }
  }
  return Status::Ok();
}

}  // namespace tq
