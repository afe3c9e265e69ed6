#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/ref/ref_ops.h"
#include "codec/codec.h"
#include "codec/hadamard.h"
#include "tensor/half.h"

namespace tq::ref {

float FloatDot(const float* w, const float* x, int64_t n) {
  float y = 0.0f;
  for (int64_t begin = 0; begin < n; begin += 256) {
    const int64_t end = std::min(n, begin + 256);
    float even = 0.0f;
    float odd = 0.0f;
    for (int64_t k = begin; k < end; k += 2) {
      even = std::fma(w[k], x[k], even);
      if (k + 1 < end) odd = std::fma(w[k + 1], x[k + 1], odd);
    }
    y = y + (even + odd);
  }
  return y;
}

namespace {

float GroupScale(const StoredMatrix& matrix, int64_t row, int64_t group_idx) {
  const int64_t groups_per_row = matrix.cols / matrix.format.group;
  uint16_t bits;
  std::memcpy(&bits, matrix.scales + (row * groups_per_row + group_idx) * 2, 2);
  return F16ToF32(bits);
}

// The fast mode: `codes` are the row's codes as integers of the integer codebook.
float IntegerDot(const RefWeight& weight, int64_t row, const int8_t* codes,
                 const ActivationRow& activation) {
  const StoredMatrix& matrix = weight.matrix();
  const int64_t group = matrix.format.group;
  float y = 0.0f;
  for (int64_t begin = 0; begin < matrix.cols; begin += activation.block) {
    const int64_t end = std::min(matrix.cols, begin + activation.block);
    float p = 0.0f;
    for (int64_t k = begin; k < end; k += group) {
      int32_t sum = 0;
      for (int64_t i = k; i < k + group; ++i) sum += int32_t{codes[i]} * activation.q[i];
      p = std::fma(GroupScale(matrix, row, k / group), static_cast<float>(sum), p);
    }
    y = std::fma(activation.scale[begin / activation.block], p, y);
  }
  return y * weight.integers().step;
}

// A row of a grid: value = scale * integer + min per group.
float GridDot(const Grid& grid, const GridRow& row, const ActivationRow& activation) {
  const auto cols = static_cast<int64_t>(row.codes.size());
  float y = 0.0f;
  for (int64_t begin = 0; begin < cols; begin += activation.block) {
    const int64_t end = std::min(cols, begin + activation.block);
    float p = 0.0f;
    for (int64_t k = begin; k < end; k += grid.group) {
      int32_t sum = 0;
      int32_t sum_of_q = 0;
      for (int64_t i = k; i < k + grid.group; ++i) {
        sum += grid.Integer(row.codes[i]) * activation.q[i];
        sum_of_q += activation.q[i];
      }
      const int64_t group = k / grid.group;
      const int64_t base = group / grid.base_groups;
      const float scale = row.bases[base] * static_cast<float>(row.factors[group]);
      const float min = row.min_bases[base] * static_cast<float>(row.min_factors[group]);
      p = std::fma(min, static_cast<float>(sum_of_q), p);
      p = std::fma(scale, static_cast<float>(sum), p);
    }
    y = std::fma(activation.scale[begin / activation.block], p, y);
  }
  return y;
}

}  // namespace

void MatMul(const MatMulArgs& args, std::span<const ActivationRow> activations, int64_t row_begin,
            int64_t row_end) {
  const auto& weight = static_cast<const RefWeight&>(*args.weight);
  const StoredMatrix& matrix = weight.matrix();
  const bool is_grid = weight.grid().has_value();
  const bool integer = !activations.empty() && activations[0].block > 0;
  GridRow grid_row;
  std::vector<float> row_values(integer ? 0 : matrix.cols);
  std::vector<uint8_t> codes(integer ? matrix.cols : 0);
  std::vector<int8_t> integers(integer ? matrix.cols : 0);
  for (int64_t row = row_begin; row < row_end; ++row) {
    if (integer && is_grid) {
      DecodeGridRow(matrix, *weight.grid(), row, grid_row);
    } else if (integer) {
      TurboQuant::DecodeCodes(matrix, row, 0, matrix.cols, codes.data());
      for (int64_t k = 0; k < matrix.cols; ++k) integers[k] = weight.integers().integers[codes[k]];
    } else {
      DecodeRow(matrix, row, 0, matrix.cols, row_values.data());
    }
    for (int64_t t = 0; t < args.num_tokens; ++t) {
      const ActivationRow& activation = activations[t];
      float y = !integer  ? FloatDot(row_values.data(), activation.x.data(), matrix.cols)
                : is_grid ? GridDot(*weight.grid(), grid_row, activation)
                          : IntegerDot(weight, row, integers.data(), activation);
      if (args.bias != nullptr) y = y + args.bias[row];
      args.y[t * matrix.rows + row] = y;
    }
  }
}

void EmbedRow(const EmbedArgs& args, int64_t token) {
  const StoredMatrix& matrix = static_cast<const RefWeight&>(*args.table).matrix();
  const std::span<float> out(args.out + token * matrix.cols, static_cast<size_t>(matrix.cols));
  DecodeRow(matrix, args.ids[token], 0, matrix.cols, out.data());
  if (matrix.format.transform == Transform::kHadamard) {
    HadamardInverse(out);
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] * matrix.signs[i];
  }
  for (float& value : out) value = value * args.scale;
}

}  // namespace tq::ref
