// A block of qwen4_exp: several residual streams. Each part reads a learned mix of them and writes
// back to all, with a gain per stream; a block may also add an embedding of hashed n-grams.
#pragma once

#include "model/block.h"
#include "model/blocks/ngram_embedding.h"

namespace tq {

// The mix of the streams, and the gains of the way back (the head of the model has no way back).
class HyperConnection {
 public:
  static Result<HyperConnection> Load(const ModelSpec& model, const std::string& prefix,
                                      bool writes_back, TensorLoader& loader);
  // in [T, hidden] = mix of the streams x [T, m, hidden]; gains [T, m] when it writes back.
  void Read(StepContext& step, const float* x, float* in, float* gains) const;
  // x += gains * y [T, hidden], stream by stream.
  void Write(StepContext& step, const float* gains, const float* y, float* x) const;
  void VisitWeights(WeightVisitor visit, void* context) const;

 private:
  int num_streams_ = 1;
  int64_t hidden_ = 0;
  int64_t rank_ = 0;
  Norm norm_;  // [m, hidden]
  Linear mix_down_, mix_up_, inject_;
};

class HyperBlock : public Block {
 public:
  static Result<std::unique_ptr<Block>> Load(const ModelSpec& model, const BlockSpec& spec,
                                             TensorLoader& loader);
  CacheNeeds Needs(const KvSettings& settings) const override;
  void Forward(StepContext& step, Residuals& residuals, KvCache& cache,
               size_t layer) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;
  int64_t mapped_bytes() const override { return ngram_ ? ngram_->mapped_bytes() : 0; }

 private:
  int num_streams_ = 1;
  int64_t hidden_ = 0;
  std::unique_ptr<NgramEmbedding> ngram_;
  HyperConnection mixer_connection_, ffn_connection_;
  std::unique_ptr<Mixer> mixer_;
  std::unique_ptr<Ffn> ffn_;
};

}  // namespace tq
