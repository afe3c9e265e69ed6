// The float kernels of every instruction set, for the table in float_ops.cc alone: a file that
// defines one of them must not include this (GCC would take a declaration without target attributes
// and its definition with them for two versions of one function).
#pragma once

#include "backend/cpu/kernels/float_ops.h"

#define TQ_DECLARE_FLOAT_KERNELS(isa_namespace)                                                    \
  namespace tq::isa_namespace {                                                                    \
  void RotateRow(float* x, const float* signs, int64_t n, int hadamard_m, int64_t hadamard_pow2);  \
  void QuantizeRow(const float* x, int64_t n, int64_t block, int8_t* q, float* sx);                \
  void FloatMatMul(const FloatMatMulArgs& args, int64_t tile_begin, int64_t tile_end);             \
  void Transpose16(const float* rows, int64_t ld, int64_t n, float* tile);                         \
  void TransposeRows(const std::byte* rows, int64_t row_bytes, int64_t words, std::byte* tile);    \
  void RepackCodes(const std::byte* rows, int64_t row_bytes, int entries, int64_t num_cols,        \
                   std::byte* tile);                                                               \
  void EmbedRow(FloatType type, const std::byte* tiles, int64_t num_cols, int64_t row,             \
                float scale, float* out);                                                          \
  void RmsNormRow(const float* x, const float* w, bool plus_one, float eps, int64_t n,             \
                  float* out);                                                                     \
  void LayerNormRow(const LayerNormArgs& args, int64_t row);                                       \
  void RopeHead(float* x, int64_t rotary_dim, const float* cos, const float* sin);                 \
  void RopeHeadInterleaved(float* x, int64_t rotary_dim, const float* cos, const float* sin);      \
  void Glu(const GluArgs& args, int64_t begin, int64_t end);                                       \
  void MapRow(const MapArgs& args, int64_t row);                                                   \
  void ScaleRow(const float* x, float factor, int64_t n, float* out);                              \
  void Add(const float* x, float* y, int64_t n);                                                   \
  void Softcap(float* x, float cap, int64_t n);                                                    \
  void KvAppend(bool f16, int head_dim, int v_head_dim, std::byte* k_tile, std::byte* v_tile,      \
                int64_t slot, const float* k, const float* v);                                     \
  void EncodeKv(KvFormat format, const float* x, int64_t n, int group, uint8_t* codes,             \
                uint16_t* scales);                                                                 \
  int64_t AttentionWork(const AttentionArgs& args, int64_t num_items);                             \
  void Attention(const AttentionArgs& args, const SequencePlan& sequence, int64_t item_begin,      \
                 int64_t item_end, int kv_head, float* work);                                      \
  int64_t PackedAttentionWork(const AttentionArgs& args, bool integers, int64_t num_items);        \
  void PackedAttention(const AttentionArgs& args, const PackedKernels& kernels,                    \
                       const SequencePlan& sequence, int64_t item_begin, int64_t item_end,         \
                       int kv_head, float* work);                                                  \
  void IndexScores(const IndexSelectArgs& args, const SequencePlan& sequence, int64_t token,       \
                   int64_t tile_begin, int64_t tile_end, float* scores);                           \
  void CausalConv(const CausalConvArgs& args, const SequencePlan& sequence, int64_t channel_begin, \
                  int64_t channel_end);                                                            \
  void DeltaRule(const DeltaRuleArgs& args, const SequencePlan& sequence, int64_t head);           \
  void MambaScan(const MambaScanArgs& args, const SequencePlan& sequence, int64_t head);           \
  void MoeCombine(const MoeCombineArgs& args, int64_t token);                                      \
  void ResidualMix(const ResidualMixArgs& args, int64_t token);                                    \
  void StreamMean(const StreamMeanArgs& args, int64_t token);                                      \
  void StreamInject(const StreamInjectArgs& args, int64_t token);                                  \
  void StreamGate(const StreamGateArgs& args, int64_t token);                                      \
  inline constexpr FloatOps kFloatOps = {                                                          \
      .rotate_row = RotateRow,                                                                     \
      .quantize_row = QuantizeRow,                                                                 \
      .float_matmul = FloatMatMul,                                                                 \
      .transpose16 = Transpose16,                                                                  \
      .transpose_rows = TransposeRows,                                                             \
      .repack_codes = RepackCodes,                                                                 \
      .embed_row = EmbedRow,                                                                       \
      .rms_norm_row = RmsNormRow,                                                                  \
      .layer_norm_row = LayerNormRow,                                                              \
      .rope_head = RopeHead,                                                                       \
      .rope_head_interleaved = RopeHeadInterleaved,                                                \
      .glu = Glu,                                                                                  \
      .map_row = MapRow,                                                                           \
      .scale_row = ScaleRow,                                                                       \
      .add = Add,                                                                                  \
      .softcap = Softcap,                                                                          \
      .kv_append = KvAppend,                                                                       \
      .encode_kv = EncodeKv,                                                                       \
      .attention_work = AttentionWork,                                                             \
      .attention = Attention,                                                                      \
      .packed_attention_work = PackedAttentionWork,                                                \
      .packed_attention = PackedAttention,                                                         \
      .index_scores = IndexScores,                                                                 \
      .causal_conv = CausalConv,                                                                   \
      .delta_rule = DeltaRule,                                                                     \
      .mamba_scan = MambaScan,                                                                     \
      .moe_combine = MoeCombine,                                                                   \
      .residual_mix = ResidualMix,                                                                 \
      .stream_mean = StreamMean,                                                                   \
      .stream_inject = StreamInject,                                                               \
      .stream_gate = StreamGate,                                                                   \
  };                                                                                               \
  }

#if defined(__x86_64__)
TQ_DECLARE_FLOAT_KERNELS(N_AVX2)
TQ_DECLARE_FLOAT_KERNELS(N_AVX3)
#else
TQ_DECLARE_FLOAT_KERNELS(N_NEON)
#endif

#undef TQ_DECLARE_FLOAT_KERNELS
