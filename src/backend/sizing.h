// SizingBackend: what Backend::Sizing() returns. Weights have the sizes, layouts and kernels of
// real ones but no memory, and nothing of a StoredMatrix but its shape, format and codebook's
// length is looked at; ops take the scratch memory that the real ones would, and compute nothing.
// The model's own code runs on it for a memory plan, within milliseconds.
#pragma once

#include "backend/backend.h"

namespace tq {

class SizingBackend : public Backend {
 public:
  // Of a backend whose ops take no scratch memory; others override what does.
  void MatMul(std::span<const MatMulArgs>, Scratch&) override {}
  void Attention(const AttentionArgs&, Scratch&) override {}
  void IndexSelect(const IndexSelectArgs&, Scratch&) override {}

  // Spread over all experts: the most matrices take part.
  void Route(const RouteArgs& args) override {
    for (int64_t i = 0; i < args.num_tokens * args.rule.top_k; ++i) {
      args.experts[i] = static_cast<int32_t>(i % args.rule.num_experts);
    }
  }

  void Embed(const EmbedArgs&) override {}
  void RmsNorm(const RmsNormArgs&) override {}
  void LayerNorm(const LayerNormArgs&) override {}
  void Rope(const RopeArgs&) override {}
  void KvAppend(const KvAppendArgs&) override {}
  void CausalConv(const CausalConvArgs&) override {}
  void DeltaRule(const DeltaRuleArgs&) override {}
  void MambaScan(const MambaScanArgs&) override {}
  void MoeCombine(const MoeCombineArgs&) override {}
  void Glu(const GluArgs&) override {}
  void Map(const MapArgs&) override {}
  void ScaleRows(const ScaleRowsArgs&) override {}
  void CopyRows(const CopyRowsArgs&) override {}
  void Add(const AddArgs&) override {}
  void Softcap(const SoftcapArgs&) override {}
  void ResidualMix(const ResidualMixArgs&) override {}
  void StreamMean(const StreamMeanArgs&) override {}
  void StreamInject(const StreamInjectArgs&) override {}
  void StreamGate(const StreamGateArgs&) override {}
};

}  // namespace tq
