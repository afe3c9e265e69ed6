// The arithmetic of the ref backend, one function per op on a range of rows. Internal to
// backend/ref.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/kv_rows.h"
#include "backend/ops.h"
#include "backend/ops_index.h"
#include "backend/ops_moe.h"
#include "backend/ops_recurrent.h"
#include "backend/ops_streams.h"
#include "codec/format.h"
#include "codec/grid.h"
#include "codec/turbo_quant.h"

namespace tq::ref {

// A copy of a stored matrix; `matrix` points into the vectors.
class RefWeight : public Weight {
 public:
  explicit RefWeight(const StoredMatrix& stored);
  int64_t bytes() const override { return bytes_; }
  static int64_t BytesOf(const StoredMatrix& stored);
  const char* kernel() const override { return "ref"; }
  const StoredMatrix& matrix() const { return matrix_; }
  const IntegerCodebook& integers() const { return integers_; }
  const std::optional<Grid>& grid() const { return grid_; }

 private:
  int64_t bytes_;
  StoredMatrix matrix_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  std::vector<std::byte> biases_;
  std::vector<float> codebook_;
  std::vector<float> signs_;
  IntegerCodebook integers_;
  std::optional<Grid> grid_;
};

// One activation row, ready to meet a matrix.
struct ActivationRow {
  std::vector<float> x;  // rotated if the matrix is
  int64_t block = 0;     // columns per scale of q; 0: f32 only
  std::vector<int8_t> q;
  std::vector<float> scale;  // [ceil(n / block)]
};

// Steps 1-4 of the activation preparation, in place.
void Rotate(std::span<float> x, std::span<const float> signs);
void Quantize(ActivationRow& activation, int64_t block);
ActivationRow Prepare(const StoredMatrix& matrix, const float* x, bool int8);

// sum over k of w[k] * x[k] in the order of float matrices.
float FloatDot(const float* w, const float* x, int64_t n);

// y[t * N + n] for the rows [row_begin, row_end).
void MatMul(const MatMulArgs& args, std::span<const ActivationRow> activations, int64_t row_begin,
            int64_t row_end);

// sum over i of a[i] * b[i] over 256 lanes and their tree.
float LaneDot(const float* a, const float* b, int64_t n);
// 1 / sqrt(sum / n + eps).
float InverseRms(float sum_of_squares, int64_t n, float eps);

void EmbedRow(const EmbedArgs& args, int64_t token);
void RmsNormRow(const RmsNormArgs& args, int64_t row);
void LayerNormRow(const LayerNormArgs& args, int64_t row);
void RopeToken(const RopeArgs& args, int64_t token);
void Glu(const GluArgs& args, int64_t begin, int64_t end);
void MapRow(const MapArgs& args, int64_t row);
void ScaleRow(const ScaleRowsArgs& args, int64_t row);
void CopyRow(const CopyRowsArgs& args, int64_t row);
void Softcap(const SoftcapArgs& args, int64_t begin, int64_t end);

void KvAppend(const KvAppendArgs& args, const KvRotation& k_rotation, const KvRotation& v_rotation);
// Token `token` of `sequence`, all heads. integers: packed tiles by the integer rule (fast mode).
void AttentionToken(const AttentionArgs& args, const KvRotation& k_rotation,
                    const KvRotation& v_rotation, bool integers, const SequencePlan& sequence,
                    int64_t token);
void IndexSelectToken(const IndexSelectArgs& args, const SequencePlan& sequence, int64_t token);

// All tokens of a sequence.
void CausalConv(const CausalConvArgs& args, const SequencePlan& sequence);
void DeltaRuleHead(const DeltaRuleArgs& args, const SequencePlan& sequence, int64_t head);
void MambaScanHead(const MambaScanArgs& args, const SequencePlan& sequence, int64_t head);

void MoeCombineToken(const MoeCombineArgs& args, int64_t token);
void ResidualMixToken(const ResidualMixArgs& args, int64_t token);
void StreamMeanToken(const StreamMeanArgs& args, int64_t token);
void StreamInjectToken(const StreamInjectArgs& args, int64_t token);
void StreamGateToken(const StreamGateArgs& args, int64_t token);

}  // namespace tq::ref
