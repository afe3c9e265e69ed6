#include "model/describe.h"

#include <vector>

namespace tq {
namespace {

std::string WithDetails(std::string name, const std::vector<std::string>& details) {
  for (size_t i = 0; i < details.size(); ++i) name += (i == 0 ? " (" : ", ") + details[i];
  return details.empty() ? name : name + ")";
}

std::string GateName(OutputGate gate) {
  switch (gate) {
    case OutputGate::kNone:
      return "";
    case OutputGate::kSigmoidInQ:
    case OutputGate::kSigmoid:
      return "sigmoid gate";
    case OutputGate::kSoftplus:
    case OutputGate::kSoftplusPerHead:
      return "softplus gate";
  }
  return "";
}

std::string ActivationName(const DenseFfnSpec& ffn) {
  if (!ffn.gated) return "relu2";
  switch (ffn.activation) {
    case Activation::kSilu:
      return "silu";
    case Activation::kGeluTanh:
      return "gelu";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kSoftplus:
      return "softplus";
    case Activation::kClampedSilu:
      return "clamped silu";
    case Activation::kSitu:
      return "situ";
  }
  return "";
}

std::string Describe(const AttentionSpec& spec) {
  std::vector<std::string> details;
  if (spec.q_bias || spec.o_bias) details.emplace_back("biases");
  if (spec.qk_norm) details.emplace_back("head norms");
  if (spec.v_norm) details.emplace_back("value norm");
  if (spec.rope < 0) details.emplace_back("no rope");
  if (spec.sliding_window > 0) details.emplace_back("window");
  if (!spec.sinks.empty()) details.emplace_back("sinks");
  if (spec.gate != OutputGate::kNone) details.push_back(GateName(spec.gate));
  if (spec.kv_layer >= 0) details.emplace_back("shared K and V");
  if (spec.indexer) details.emplace_back("block-sparse");
  return WithDetails("attention", details);
}

std::string Describe(const MlaSpec& spec) {
  std::vector<std::string> details;
  if (spec.rope < 0) details.emplace_back("no rope");
  if (!spec.gate_name.empty()) details.emplace_back("sigmoid gate");
  if (spec.indexer) details.emplace_back("token-sparse");
  return WithDetails("latent attention", details);
}

std::string Describe(const GatedDeltaNetSpec&) { return "Gated DeltaNet"; }
std::string Describe(const KdaSpec&) { return "Kimi Delta Attention"; }
std::string Describe(const Mamba2Spec&) { return "Mamba2"; }
std::string Describe(const std::monostate&) { return "none"; }
std::string Describe(const DenseFfnSpec& spec) { return "dense (" + ActivationName(spec) + ")"; }

std::string Describe(const MoeSpec& spec) {
  std::vector<std::string> details;
  const RouterScore score = spec.router.score;
  const bool softmax = score == RouterScore::kSoftmax || score == RouterScore::kSoftmaxTopK;
  details.emplace_back(softmax ? "softmax" : "sigmoid");
  if (spec.router.num_groups > 1) details.emplace_back("groups");
  if (!spec.shared_name.empty()) details.emplace_back(spec.shared_gate ? "gated shared" : "shared");
  if (spec.latent_size > 0) details.emplace_back("latent");
  if (spec.expert.activation != Activation::kSilu || !spec.expert.gated) {
    details.push_back(ActivationName(spec.expert));
  }
  return WithDetails("experts " + std::to_string(spec.router.top_k) + " of " +
                         std::to_string(spec.router.num_experts),
                     details);
}

template <typename Spec>
std::string DescribePart(const Spec& part) {
  return std::visit([](const auto& spec) { return Describe(spec); }, part);
}

}  // namespace

std::string DescribeMixer(const BlockSpec& block) { return DescribePart(block.mixer); }

std::string DescribeFfn(const BlockSpec& block) {
  std::string out = DescribePart(block.ffn);
  if (!std::holds_alternative<std::monostate>(block.parallel_ffn)) {
    out += " + " + DescribePart(block.parallel_ffn);
  }
  return out;
}

std::string DescribeResidual(const BlockSpec& block) {
  switch (block.residual) {
    case Residual::kPre:
      return "pre";
    case Residual::kSandwich:
      return "sandwich";
    case Residual::kSingle:
      return "single";
    case Residual::kHyper:
      return "streams";
    case Residual::kAttend:
      return "attended residuals";
  }
  return "";
}

}  // namespace tq
