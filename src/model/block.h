// Block: one layer of a model: a mixer (attention or recurrent), a feed-forward part, their norms,
// and how they meet the residual stream.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "model/project.h"
#include "model/spec.h"
#include "model/step_context.h"

namespace tq {

// Calls visit(name, weight) for every prepared matrix, in forward order.
using WeightVisitor = void (*)(void* context, const std::string& name, const Weight& weight);

// visit for each that has a weight.
void VisitLinears(WeightVisitor visit, void* context, std::initializer_list<const Linear*> linears);

class Mixer {
 public:
  virtual ~Mixer() = default;
  virtual CacheNeeds Needs(const KvSettings& settings) const = 0;
  // y[T, hidden] = mixer(x[T, hidden]). `layer` is its own in the cache.
  virtual void Forward(StepContext& step, const float* x, float* y, KvCache& cache,
                       size_t layer) const = 0;
  virtual void VisitWeights(WeightVisitor visit, void* context) const = 0;
};

class Ffn {
 public:
  virtual ~Ffn() = default;
  // y[T, hidden] = ffn(x[T, hidden]). router_x: what a router sees, nearly always x itself.
  virtual void Forward(StepContext& step, const float* x, const float* router_x,
                       float* y) const = 0;
  virtual void VisitWeights(WeightVisitor visit, void* context) const = 0;
};

// prefix: "model.layers.3.self_attn.". Null for monostate.
Result<std::unique_ptr<Mixer>> LoadMixer(const MixerSpec& spec, const std::string& prefix,
                                         int64_t hidden_size, TensorLoader& loader);
Result<std::unique_ptr<Ffn>> LoadFfn(const FfnSpec& spec, const std::string& prefix,
                                     int64_t hidden_size, TensorLoader& loader);

inline constexpr int kMaxSnapshots = 63;

// The residual stream of one step. Memory: the step's scratch.
struct Residuals {
  float* x = nullptr;  // [T, num_streams * hidden]
  // kAttend: earlier residuals, each [T, hidden]; the first num_snapshots.
  std::array<const float*, kMaxSnapshots> snapshots = {};
  size_t num_snapshots = 0;
  const float* per_layer_inputs = nullptr;  // gemma4: [T, num_layers, per_layer_input]
};

class Block {
 public:
  virtual ~Block() = default;
  static Result<std::unique_ptr<Block>> Load(const ModelSpec& model, const BlockSpec& spec,
                                             TensorLoader& loader);
  virtual CacheNeeds Needs(const KvSettings& settings) const = 0;
  virtual void Forward(StepContext& step, Residuals& residuals, KvCache& cache,
                       size_t layer) const = 0;
  virtual void VisitWeights(WeightVisitor visit, void* context) const = 0;
  // Of tables whose rows are read from the checkpoint's files when they are wanted.
  virtual int64_t mapped_bytes() const { return 0; }
};

// A norm over hidden_size with its weight.
struct Norm {
  NormSpec spec;
  std::vector<float> w;  // empty: no weight
  static Result<Norm> Load(const NormSpec& spec, const std::string& name, int64_t n,
                           TensorLoader& loader);
  // Rows of n floats; w_rows weight rows of n in turn. out may be x.
  void Apply(StepContext& step, const float* x, float* out, int64_t num_rows, int64_t n,
             int64_t w_rows = 1) const;
};

}  // namespace tq
