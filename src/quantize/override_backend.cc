#include "quantize/override_backend.h"

#include <algorithm>

#include "base/check.h"

namespace tq {

void OverrideBackend::Replace(const Weight* original, std::unique_ptr<Weight> replacement) {
  replacements_[original] = std::move(replacement);
}

void OverrideBackend::BeginPass(bool overrides_active, Routes routes) {
  active_ = overrides_active;
  ended_ = false;
  routes_ = routes;
  next_route_ = 0;
  last_product_ = nullptr;
  last_output_ = nullptr;
  if (routes == Routes::kRecord) routed_.clear();
}

void OverrideBackend::EndPassAt(const Weight* product,
                                std::function<void(const float*)> on_residual) {
  last_product_ = product;
  on_residual_ = std::move(on_residual);
}

bool OverrideBackend::Skip() {
  if (last_output_ != nullptr) ended_ = true;
  return ended_;
}

void OverrideBackend::Add(const AddArgs& args) {
  if (!ended_ && last_output_ != nullptr && args.x == last_output_) on_residual_(args.y);
  if (!Skip()) base_.Add(args);
}

void OverrideBackend::MatMul(std::span<const MatMulArgs> args, Scratch& scratch) {
  if (Skip()) return;
  for (const MatMulArgs& one : args) {
    if (last_product_ == nullptr || one.weight != last_product_) continue;
    last_output_ = one.y;
    return;
  }
  args_.assign(args.begin(), args.end());
  for (MatMulArgs& one : args_) {
    const auto found = replacements_.find(one.weight);
    if (active_ && found != replacements_.end()) one.weight = found->second.get();
  }
  base_.MatMul(args_, scratch);
}

// What follows a router counts its choices, so they are valid even when the pass has ended.
void OverrideBackend::Route(const RouteArgs& args) {
  const int64_t n = args.num_tokens * args.rule.top_k;
  if (Skip()) {
    for (int64_t i = 0; i < n; ++i) {
      args.experts[i] = static_cast<int32_t>(i % args.rule.top_k);
      args.weights[i] = 0;
    }
    return;
  }
  if (routes_ == Routes::kRecord) {
    base_.Route(args);
    routed_.push_back({{args.experts, args.experts + n}, {args.weights, args.weights + n}});
    return;
  }
  TQ_CHECK(next_route_ < routed_.size());
  const Routed& routed = routed_[next_route_++];
  TQ_CHECK(static_cast<int64_t>(routed.experts.size()) == n);
  std::copy(routed.experts.begin(), routed.experts.end(), args.experts);
  std::copy(routed.weights.begin(), routed.weights.end(), args.weights);
}

void OverrideBackend::Embed(const EmbedArgs& args) {
  if (!Skip()) base_.Embed(args);
}

void OverrideBackend::RmsNorm(const RmsNormArgs& args) {
  if (!Skip()) base_.RmsNorm(args);
}

void OverrideBackend::LayerNorm(const LayerNormArgs& args) {
  if (!Skip()) base_.LayerNorm(args);
}

void OverrideBackend::Rope(const RopeArgs& args) {
  if (!Skip()) base_.Rope(args);
}

void OverrideBackend::KvAppend(const KvAppendArgs& args) {
  if (!Skip()) base_.KvAppend(args);
}

void OverrideBackend::Attention(const AttentionArgs& args, Scratch& scratch) {
  if (!Skip()) base_.Attention(args, scratch);
}

void OverrideBackend::IndexSelect(const IndexSelectArgs& args, Scratch& scratch) {
  if (!Skip()) base_.IndexSelect(args, scratch);
}

void OverrideBackend::CausalConv(const CausalConvArgs& args) {
  if (!Skip()) base_.CausalConv(args);
}

void OverrideBackend::DeltaRule(const DeltaRuleArgs& args) {
  if (!Skip()) base_.DeltaRule(args);
}

void OverrideBackend::MambaScan(const MambaScanArgs& args) {
  if (!Skip()) base_.MambaScan(args);
}

void OverrideBackend::MoeCombine(const MoeCombineArgs& args) {
  if (!Skip()) base_.MoeCombine(args);
}

void OverrideBackend::Glu(const GluArgs& args) {
  if (!Skip()) base_.Glu(args);
}

void OverrideBackend::Map(const MapArgs& args) {
  if (!Skip()) base_.Map(args);
}

void OverrideBackend::ScaleRows(const ScaleRowsArgs& args) {
  if (!Skip()) base_.ScaleRows(args);
}

void OverrideBackend::CopyRows(const CopyRowsArgs& args) {
  if (!Skip()) base_.CopyRows(args);
}

void OverrideBackend::Softcap(const SoftcapArgs& args) {
  if (!Skip()) base_.Softcap(args);
}

void OverrideBackend::ResidualMix(const ResidualMixArgs& args) {
  if (!Skip()) base_.ResidualMix(args);
}

void OverrideBackend::StreamMean(const StreamMeanArgs& args) {
  if (!Skip()) base_.StreamMean(args);
}

void OverrideBackend::StreamInject(const StreamInjectArgs& args) {
  if (!Skip()) base_.StreamInject(args);
}

void OverrideBackend::StreamGate(const StreamGateArgs& args) {
  if (!Skip()) base_.StreamGate(args);
}

}  // namespace tq
