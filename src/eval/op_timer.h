// OpTimer: a backend that hands every op to another one and adds up how long each kind takes.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace tq {

struct OpTime {
  std::string_view name;
  double seconds = 0;
  int64_t calls = 0;
};

class OpTimer : public Backend {
 public:
  // backend must outlive the timer; weights that it has prepared are used as they are.
  explicit OpTimer(Backend& backend);

  void Reset();
  // Since the last Reset, the slowest kind first; kinds without a call are left out.
  std::vector<OpTime> Times() const;

  std::string_view name() const override { return backend_.name(); }
  std::string_view isa() const override { return backend_.isa(); }
  ActivationMode activations() const override { return backend_.activations(); }
  int num_threads() const override { return backend_.num_threads(); }
  Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) override {
    return backend_.Prepare(stored);
  }

  void Embed(const EmbedArgs& args) override;
  void MatMul(std::span<const MatMulArgs> args, Scratch& scratch) override;
  void RmsNorm(const RmsNormArgs& args) override;
  void LayerNorm(const LayerNormArgs& args) override;
  void Rope(const RopeArgs& args) override;
  void KvAppend(const KvAppendArgs& args) override;
  void Attention(const AttentionArgs& args, Scratch& scratch) override;
  void IndexSelect(const IndexSelectArgs& args, Scratch& scratch) override;
  void CausalConv(const CausalConvArgs& args) override;
  void DeltaRule(const DeltaRuleArgs& args) override;
  void MambaScan(const MambaScanArgs& args) override;
  void Route(const RouteArgs& args) override;
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
  enum Kind : size_t {
    kEmbed,
    kMatMul,
    kRmsNorm,
    kLayerNorm,
    kRope,
    kKvAppend,
    kAttention,
    kIndexSelect,
    kCausalConv,
    kDeltaRule,
    kMambaScan,
    kRoute,
    kMoeCombine,
    kGlu,
    kMap,
    kScaleRows,
    kCopyRows,
    kAdd,
    kSoftcap,
    kResidualMix,
    kStreamMean,
    kStreamInject,
    kStreamGate,
    kNumKinds,
  };
  template <typename Call>
  void Time(Kind kind, const Call& call);

  Backend& backend_;
  std::array<OpTime, kNumKinds> times_;
};

}  // namespace tq
