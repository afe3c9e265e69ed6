#include "eval/op_timer.h"

#include <algorithm>
#include <chrono>

namespace tq {
namespace {

constexpr std::string_view kNames[] = {
    "embed",       "matmul",       "rms_norm",    "layer_norm",    "rope",       "kv_append",
    "attention",   "index_select", "causal_conv", "delta_rule",    "mamba_scan", "route",
    "moe_combine", "glu",          "map",         "scale_rows",    "copy_rows",  "add",
    "softcap",     "residual_mix", "stream_mean", "stream_inject", "stream_gate"};

}  // namespace

OpTimer::OpTimer(Backend& backend) : backend_(backend) {
  static_assert(std::size(kNames) == kNumKinds);
  Reset();
}

void OpTimer::Reset() {
  for (size_t i = 0; i < kNumKinds; ++i) times_[i] = {.name = kNames[i]};
}

std::vector<OpTime> OpTimer::Times() const {
  std::vector<OpTime> out;
  for (const OpTime& time : times_) {
    if (time.calls > 0) out.push_back(time);
  }
  std::sort(out.begin(), out.end(),
            [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
  return out;
}

template <typename Call>
void OpTimer::Time(Kind kind, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  times_[kind].seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ++times_[kind].calls;
}

void OpTimer::Embed(const EmbedArgs& args) {
  Time(kEmbed, [&] { backend_.Embed(args); });
}
void OpTimer::MatMul(std::span<const MatMulArgs> args, Scratch& scratch) {
  Time(kMatMul, [&] { backend_.MatMul(args, scratch); });
}
void OpTimer::RmsNorm(const RmsNormArgs& args) {
  Time(kRmsNorm, [&] { backend_.RmsNorm(args); });
}
void OpTimer::LayerNorm(const LayerNormArgs& args) {
  Time(kLayerNorm, [&] { backend_.LayerNorm(args); });
}
void OpTimer::Rope(const RopeArgs& args) {
  Time(kRope, [&] { backend_.Rope(args); });
}
void OpTimer::KvAppend(const KvAppendArgs& args) {
  Time(kKvAppend, [&] { backend_.KvAppend(args); });
}
void OpTimer::Attention(const AttentionArgs& args, Scratch& scratch) {
  Time(kAttention, [&] { backend_.Attention(args, scratch); });
}
void OpTimer::IndexSelect(const IndexSelectArgs& args, Scratch& scratch) {
  Time(kIndexSelect, [&] { backend_.IndexSelect(args, scratch); });
}
void OpTimer::CausalConv(const CausalConvArgs& args) {
  Time(kCausalConv, [&] { backend_.CausalConv(args); });
}
void OpTimer::DeltaRule(const DeltaRuleArgs& args) {
  Time(kDeltaRule, [&] { backend_.DeltaRule(args); });
}
void OpTimer::MambaScan(const MambaScanArgs& args) {
  Time(kMambaScan, [&] { backend_.MambaScan(args); });
}
void OpTimer::Route(const RouteArgs& args) {
  Time(kRoute, [&] { backend_.Route(args); });
}
void OpTimer::MoeCombine(const MoeCombineArgs& args) {
  Time(kMoeCombine, [&] { backend_.MoeCombine(args); });
}
void OpTimer::Glu(const GluArgs& args) {
  Time(kGlu, [&] { backend_.Glu(args); });
}
void OpTimer::Map(const MapArgs& args) {
  Time(kMap, [&] { backend_.Map(args); });
}
void OpTimer::ScaleRows(const ScaleRowsArgs& args) {
  Time(kScaleRows, [&] { backend_.ScaleRows(args); });
}
void OpTimer::CopyRows(const CopyRowsArgs& args) {
  Time(kCopyRows, [&] { backend_.CopyRows(args); });
}
void OpTimer::Add(const AddArgs& args) {
  Time(kAdd, [&] { backend_.Add(args); });
}
void OpTimer::Softcap(const SoftcapArgs& args) {
  Time(kSoftcap, [&] { backend_.Softcap(args); });
}
void OpTimer::ResidualMix(const ResidualMixArgs& args) {
  Time(kResidualMix, [&] { backend_.ResidualMix(args); });
}
void OpTimer::StreamMean(const StreamMeanArgs& args) {
  Time(kStreamMean, [&] { backend_.StreamMean(args); });
}
void OpTimer::StreamInject(const StreamInjectArgs& args) {
  Time(kStreamInject, [&] { backend_.StreamInject(args); });
}
void OpTimer::StreamGate(const StreamGateArgs& args) {
  Time(kStreamGate, [&] { backend_.StreamGate(args); });
}

}  // namespace tq
