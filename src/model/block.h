// Block: one layer of a model: a mixer (attention or recurrent), a feed-forward part, their norms.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "model/spec.h"
#include "model/step_context.h"
#include "weights/loader.h"

namespace tq {

// Calls visit(name, weight) for every prepared matrix, in forward order.
using WeightVisitor = void (*)(void* context, const std::string& name, const Weight& weight);

class Mixer {
 public:
  virtual ~Mixer() = default;
  virtual KvLayout CacheNeeds(KvType type) const = 0;
  // y[T, hidden] = mixer(x[T, hidden]).
  virtual void Forward(StepContext& step, const float* x, float* y, LayerCache& cache) const = 0;
  virtual void VisitWeights(WeightVisitor visit, void* context) const = 0;
};

class Ffn {
 public:
  virtual ~Ffn() = default;
  virtual void Forward(StepContext& step, const float* x, float* y) const = 0;
  virtual void VisitWeights(WeightVisitor visit, void* context) const = 0;
};

class Block {
 public:
  static Result<Block> Load(const BlockSpec& spec, int64_t hidden_size, WeightLoader& loader);

  const Mixer& mixer() const { return *mixer_; }
  const Ffn& ffn() const { return *ffn_; }
  // x[T, hidden] is updated in place.
  void Forward(StepContext& step, float* x, LayerCache& cache) const;

 private:
  void Norm(StepContext& step, const std::vector<float>& w, const float* x, float* out) const;

  Residual residual_ = Residual::kPre;
  NormSpec norm_;
  int64_t hidden_size_ = 0;
  std::unique_ptr<Mixer> mixer_;
  std::unique_ptr<Ffn> ffn_;
  std::vector<float> input_norm_;
  std::vector<float> post_attention_norm_;
  std::vector<float> pre_ffn_norm_;   // kSandwich only
  std::vector<float> post_ffn_norm_;  // kSandwich only
};

}  // namespace tq
