// The float kernels of every instruction set, for the table in float_ops.cc alone: a file that
// defines one of them must not include this (GCC would take a declaration without target attributes
// and its definition with them for two versions of one function).
#pragma once

#include "backend/cpu/kernels/float_ops.h"

#define TQ_DECLARE_FLOAT_KERNELS(isa_namespace)                                                   \
  namespace tq::isa_namespace {                                                                   \
  void RotateRow(float* x, const float* signs, int64_t n, int hadamard_m, int64_t hadamard_pow2); \
  void QuantizeRow(const float* x, int64_t n, int64_t block, int8_t* q, float* sx);               \
  void FloatMatMul(const FloatMatMulArgs& args, int64_t tile_begin, int64_t tile_end);            \
  void Transpose16(const float* rows, int64_t ld, int64_t n, float* tile);                        \
  void EmbedRow(FloatType type, const std::byte* tiles, int64_t num_cols, int64_t row,            \
                float scale, float* out);                                                         \
  void RmsNormRow(const float* x, const float* w, bool plus_one, float eps, int64_t n,            \
                  float* out);                                                                    \
  void RopeHead(float* x, int64_t rotary_dim, const float* cos, const float* sin);                \
  void GluSilu(const float* gate, const float* up, float* out, int64_t n);                        \
  void GluGeluTanh(const float* gate, const float* up, float* out, int64_t n);                    \
  void Add(const float* x, float* y, int64_t n);                                                  \
  void Softcap(float* x, float cap, int64_t n);                                                   \
  void KvAppend(bool f16, int head_dim, std::byte* k_tile, std::byte* v_tile, int64_t slot,       \
                const float* k, const float* v);                                                  \
  int64_t AttentionWork(const AttentionTask& task, int64_t num_tokens);                           \
  void Attention(const AttentionTask& task, int64_t token_begin, int64_t token_end, int kv_head,  \
                 float* work);                                                                    \
  inline constexpr FloatOps kFloatOps = {                                                         \
      .rotate_row = RotateRow,                                                                    \
      .quantize_row = QuantizeRow,                                                                \
      .float_matmul = FloatMatMul,                                                                \
      .transpose16 = Transpose16,                                                                 \
      .embed_row = EmbedRow,                                                                      \
      .rms_norm_row = RmsNormRow,                                                                 \
      .rope_head = RopeHead,                                                                      \
      .glu_silu = GluSilu,                                                                        \
      .glu_gelu_tanh = GluGeluTanh,                                                               \
      .add = Add,                                                                                 \
      .softcap = Softcap,                                                                         \
      .kv_append = KvAppend,                                                                      \
      .attention_work = AttentionWork,                                                            \
      .attention = Attention,                                                                     \
  };                                                                                              \
  }

#if defined(__x86_64__)
TQ_DECLARE_FLOAT_KERNELS(N_AVX2)
TQ_DECLARE_FLOAT_KERNELS(N_AVX3)
#else
TQ_DECLARE_FLOAT_KERNELS(N_NEON)
#endif

#undef TQ_DECLARE_FLOAT_KERNELS
