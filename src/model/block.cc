#include "model/block.h"

#include "model/blocks/attend_block.h"
#include "model/blocks/hyper_block.h"
#include "model/blocks/plain_block.h"
#include "model/ffns/dense.h"
#include "model/ffns/moe.h"
#include "model/mixers/attention.h"
#include "model/mixers/gated_delta_net.h"
#include "model/mixers/kda.h"
#include "model/mixers/mamba2.h"
#include "model/mixers/mla.h"

namespace tq {

Result<std::unique_ptr<Mixer>> LoadMixer(const MixerSpec& spec, const std::string& prefix,
                                         int64_t hidden_size, TensorLoader& loader) {
  using Loaded = Result<std::unique_ptr<Mixer>>;
  struct Visitor {
    const std::string& prefix;
    int64_t hidden_size;
    TensorLoader& loader;
    Loaded operator()(const std::monostate&) const { return std::unique_ptr<Mixer>(); }
    Loaded operator()(const AttentionSpec& s) const {
      return Attention::Load(s, prefix, hidden_size, loader);
    }
    Loaded operator()(const MlaSpec& s) const { return Mla::Load(s, prefix, hidden_size, loader); }
    Loaded operator()(const GatedDeltaNetSpec& s) const {
      return GatedDeltaNet::Load(s, prefix, hidden_size, loader);
    }
    Loaded operator()(const KdaSpec& s) const { return Kda::Load(s, prefix, hidden_size, loader); }
    Loaded operator()(const Mamba2Spec& s) const {
      return Mamba2::Load(s, prefix, hidden_size, loader);
    }
  };
  return std::visit(Visitor{prefix, hidden_size, loader}, spec);
}

Result<std::unique_ptr<Ffn>> LoadFfn(const FfnSpec& spec, const std::string& prefix,
                                     int64_t hidden_size, TensorLoader& loader) {
  using Loaded = Result<std::unique_ptr<Ffn>>;
  struct Visitor {
    const std::string& prefix;
    int64_t hidden_size;
    TensorLoader& loader;
    Loaded operator()(const std::monostate&) const { return std::unique_ptr<Ffn>(); }
    Loaded operator()(const DenseFfnSpec& s) const {
      return DenseFfn::Load(s, prefix, hidden_size, loader);
    }
    Loaded operator()(const MoeSpec& s) const { return Moe::Load(s, prefix, hidden_size, loader); }
  };
  return std::visit(Visitor{prefix, hidden_size, loader}, spec);
}

Result<std::unique_ptr<Block>> Block::Load(const ModelSpec& model, const BlockSpec& spec,
                                           TensorLoader& loader) {
  switch (spec.residual) {
    case Residual::kHyper:
      return HyperBlock::Load(model, spec, loader);
    case Residual::kAttend:
      return AttendBlock::Load(model, spec, loader);
    case Residual::kPre:
    case Residual::kSandwich:
    case Residual::kSingle:
      break;
  }
  return PlainBlock::Load(model, spec, loader);
}

void VisitLinears(WeightVisitor visit, void* context,
                  std::initializer_list<const Linear*> linears) {
  for (const Linear* linear : linears) {
    if (linear->weight != nullptr) visit(context, linear->name, *linear->weight);
  }
}

Result<Norm> Norm::Load(const NormSpec& spec, const std::string& name, int64_t n,
                        TensorLoader& loader) {
  Norm norm;
  norm.spec = spec;
  if (spec.weight) {
    TQ_ASSIGN_OR_RETURN(norm.w, loader.Vector(name, n));
  }
  return norm;
}

void Norm::Apply(StepContext& step, const float* x, float* out, int64_t num_rows, int64_t n,
                 int64_t w_rows) const {
  step.backend.RmsNorm({.x = x,
                        .w = spec.weight ? w.data() : nullptr,
                        .plus_one = spec.plus_one,
                        .eps = spec.eps,
                        .out = out,
                        .num_rows = num_rows,
                        .n = n,
                        .w_rows = w_rows});
}

}  // namespace tq
