// OverrideBackend: another backend's ops, but with some weights replaced by others, and a way to
// end a pass early: what a conversion needs that runs a model while it rounds its matrices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/backend.h"

namespace tq {

class OverrideBackend : public Backend {
 public:
  // `base` must outlive it.
  explicit OverrideBackend(Backend& base) : base_(base) {}

  // Products with `original` are computed with `replacement` while overrides are active.
  void Replace(const Weight* original, std::unique_ptr<Weight> replacement);
  void ForgetReplacements() { replacements_.clear(); }

  enum class Routes : uint8_t {
    kRecord,  // routers decide, and what they decide is remembered
    kReplay,  // they repeat what was remembered, in order
  };
  // Begins a pass. Recorded routes are forgotten when a pass records.
  void BeginPass(bool overrides_active, Routes routes);
  // All ops until the next BeginPass do nothing: their outputs are of no use.
  void EndPass() { ended_ = true; }
  bool pass_ended() const { return ended_; }
  // The product with this weight is the last that the pass reaches, and is left out itself. When
  // what follows adds it to a residual, on_residual sees that, as it was before.
  void EndPassAt(const Weight* product, std::function<void(const float* residual)> on_residual);

  std::string_view name() const override { return base_.name(); }
  std::string_view isa() const override { return base_.isa(); }
  ActivationMode activations() const override { return base_.activations(); }
  int num_threads() const override { return base_.num_threads(); }
  Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) override {
    return base_.Prepare(stored);
  }

  void MatMul(std::span<const MatMulArgs> args, Scratch& scratch) override;
  void Route(const RouteArgs& args) override;
  void Embed(const EmbedArgs& args) override;
  void RmsNorm(const RmsNormArgs& args) override;
  void LayerNorm(const LayerNormArgs& args) override;
  void Rope(const RopeArgs& args) override;
  void KvAppend(const KvAppendArgs& args) override;
  void Attention(const AttentionArgs& args, Scratch& scratch) override;
  void IndexSelect(const IndexSelectArgs& args, Scratch& scratch) override;
  void CausalConv(const CausalConvArgs& args) override;
  void DeltaRule(const DeltaRuleArgs& args) override;
  void MambaScan(const MambaScanArgs& args) override;
  void MoeCombine(const MoeCombineArgs& args) override;
  void Glu(const GluArgs& args) override;
  void Map(const MapArgs& args) override;
  void ScaleRows(const ScaleRowsArgs& args) override;
  void CopyRows(const CopyRowsArgs& args) override;
  void Add(const AddArgs& args) override;
  void Softcap(const SoftcapArgs& args) override;
  void ResidualMix(const ResidualMixArgs& args) override;
  void StreamMean(const StreamMeanArgs& args) override;
  void StreamInject(const StreamInjectArgs& args) override;
  void StreamGate(const StreamGateArgs& args) override;

 private:
  struct Routed {
    std::vector<int32_t> experts;
    std::vector<float> weights;
  };

  Backend& base_;
  // Whether an op is to be left out.
  bool Skip();

  std::map<const Weight*, std::unique_ptr<Weight>> replacements_;
  const Weight* last_product_ = nullptr;
  const float* last_output_ = nullptr;  // of last_product_, once it was reached
  std::function<void(const float*)> on_residual_;
  bool active_ = false;
  bool ended_ = false;
  Routes routes_ = Routes::kRecord;
  std::vector<Routed> routed_;
  size_t next_route_ = 0;
  std::vector<MatMulArgs> args_;
};

}  // namespace tq
