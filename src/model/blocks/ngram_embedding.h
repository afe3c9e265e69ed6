// Embeddings of the last tokens' hashed n-grams, gated into the residual streams (qwen4_exp "PLE").
#pragma once

#include "model/block.h"
#include "weights/row_table.h"

namespace tq {

class NgramEmbedding {
 public:
  static Result<std::unique_ptr<NgramEmbedding>> Load(const ModelSpec& model, const NgramSpec& spec,
                                                      const std::string& prefix,
                                                      TensorLoader& loader);
  // Per sequence: the last ngram_size - 1 ids with the distance to the last padding id, then the
  // convolution's window.
  int64_t state_floats() const { return id_state() + conv_state(); }
  // x [T, m, hidden] += the embedding's contribution.
  void Add(StepContext& step, float* x, StateRef state) const;
  void VisitWeights(WeightVisitor visit, void* context) const;
  int64_t mapped_bytes() const;  // of the table, which stays in the file

 private:
  int num_heads() const { return (spec_.ngram_size - 1) * spec_.heads_per_ngram; }
  int64_t head_dim() const { return spec_.embed_dim / num_heads(); }
  int64_t width() const { return num_streams_ * hidden_; }
  int64_t id_state() const { return spec_.ngram_size; }
  int64_t conv_state() const { return int64_t{spec_.conv_kernel - 1} * spec_.ngram_size * width(); }
  // rows [T, num_heads]: rows of the whole table.
  void HashTokens(StepContext& step, StateRef state, int64_t* rows) const;
  // out [T, embed_dim].
  void Embed(int64_t num_tokens, const int64_t* rows, float* out) const;

  NgramSpec spec_;
  int64_t rows_per_shard_ = 1;
  int num_streams_ = 1;
  int64_t hidden_ = 0;
  std::vector<int64_t> multipliers_;  // [ngram_size]
  std::vector<int64_t> primes_;       // [num_heads]
  std::vector<int64_t> offsets_;      // [num_heads]
  std::vector<std::unique_ptr<RowTable>> shards_;
  Linear key_proj_, value_proj_;
  Norm key_norm_, query_norm_, conv_norm_;
  std::vector<float> conv_;  // [K, m * hidden]
};

}  // namespace tq
