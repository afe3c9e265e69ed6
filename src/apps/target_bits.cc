#include "apps/target_bits.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/output.h"
#include "base/file.h"
#include "eval/divergence.h"
#include "quantize/hessian_file.h"
#include "quantize/kind_divergence.h"

namespace tq {
namespace {

// Of the calibration's samples: enough for numbers that rank the kinds.
constexpr size_t kSamples = 4;

struct KindSummary {
  int64_t weights = 0;
  int64_t bytes = 0;
  std::map<int, int64_t> matrices;  // by width
};

std::map<std::string, KindSummary> Summaries(const TargetBits& chosen) {
  std::map<std::string, KindSummary> kinds;
  for (const BitCandidate& candidate : chosen.candidates) {
    const int bits = chosen.plan.bits.at(candidate.path);
    const auto tier = std::find(kBitTiers.begin(), kBitTiers.end(), bits) - kBitTiers.begin();
    KindSummary& kind = kinds[KindOfPath(candidate.path)];
    kind.weights += candidate.weights;
    kind.bytes += candidate.bytes[static_cast<size_t>(tier)];
    ++kind.matrices[bits];
  }
  return kinds;
}

double Bits(const KindSummary& kind) {
  return 8.0 * static_cast<double>(kind.bytes) / static_cast<double>(kind.weights);
}

// Measured divergences stay beside the calibration, so that another target costs nothing more.
std::string KindsPath(const std::string& calibration) { return calibration + ".kinds.json"; }

// What they depend on.
std::string KindsKey(const HessianFile& calibration, const QuantizeSettings& settings) {
  return fmt::format("{} {} tokens, group {}, mlp group {}, rotation {} {}",
                     calibration.fingerprint(), calibration.num_tokens(), settings.group_size,
                     settings.mlp_group_size.value_or(settings.group_size), settings.rotation,
                     settings.rotation_seed);
}

// Empty: there are none for this key, or not of all kinds.
std::map<std::string, double> KnownDivergences(const std::string& path, const std::string& key,
                                               const std::map<std::string, double>& kinds) {
  std::map<std::string, double> known;
  const Result<std::string> text = ReadTextFile(path);
  if (!text.ok()) return {};
  const Result<Json> json = ParseJson(*text, path);
  if (!json.ok() || !json->is_object() || json->value("key", Json()) != key) return {};
  const Json divergences = json->value("divergences", Json::object());
  for (const auto& [kind, unused] : kinds) {
    const auto found = divergences.find(kind);
    if (found == divergences.end() || !found->is_number()) return {};
    known[kind] = found->get<double>();
  }
  return known;
}

// Evenly over the samples, which lie text after text.
std::vector<int32_t> SomeIds(const std::vector<std::vector<int32_t>>& samples, size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<int32_t>& sample = samples[i * samples.size() / count];
    ids.insert(ids.end(), sample.begin(), sample.end());
  }
  return ids;
}

Result<std::map<std::string, double>> Measure(const WeightSource& source,
                                              const ConvertOptions& options,
                                              const std::vector<std::vector<int32_t>>& samples,
                                              const std::string& output, const CommonFlags& flags,
                                              const Console& console) {
  const size_t count = std::min(kSamples, samples.size());
  const std::vector<int32_t> ids = SomeIds(samples, count);
  BackendOptions backend_options = BackendOptionsOf(flags);
  backend_options.activations = ActivationMode::kF32;
  TQ_ASSIGN_OR_RETURN(const auto backend, MakeBackend(flags.backend, backend_options));
  TQ_ASSIGN_OR_RETURN(const auto reference, Model::Load(source, *backend));
  PerplexityOptions evaluation;
  evaluation.seq_len = static_cast<int64_t>(samples.front().size());
  evaluation.num_samples = static_cast<int64_t>(count);
  evaluation.kv = KvFormat::kF32;
  evaluation.cancel = options.cancel;
  const auto divergence_of = [&](const WeightSource& changed) -> Result<double> {
    TQ_ASSIGN_OR_RETURN(const auto model, Model::Load(changed, *backend));
    TQ_ASSIGN_OR_RETURN(const DivergenceReport report,
                        Divergence(*model, *backend, *reference, *backend, ids, evaluation));
    return report.kl;
  };
  ProgressBar bar(console, "measuring", HumanCount, " weights");
  ConvertOptions measuring = options;
  measuring.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  auto divergences =
      MeasureKinds(source, measuring, fmt::format("{}.kind-{}", output, ::getpid()), divergence_of);
  bar.Erase();
  return divergences;
}

}  // namespace

Result<TargetBits> ChooseBits(const WeightSource& source, const ConvertOptions& options,
                              double target_bits_per_weight, const std::string& output,
                              const CommonFlags& flags, const Console& console) {
  TargetBits chosen;
  TQ_ASSIGN_OR_RETURN(chosen.candidates, ListBitCandidates(source, options));
  std::map<std::string, double> kinds;
  for (const BitCandidate& candidate : chosen.candidates) kinds[KindOfPath(candidate.path)] = 0;
  // A target that cannot be met is refused before the long work.
  TQ_RETURN_IF_ERROR(AllocateBits(chosen.candidates, kinds, target_bits_per_weight).status());
  TQ_ASSIGN_OR_RETURN(const auto calibration, HessianFile::Open(options.calibration));
  TQ_RETURN_IF_ERROR(calibration->CheckFingerprint(source));
  const std::string path = KindsPath(options.calibration);
  const std::string key = KindsKey(*calibration, options.settings);
  chosen.divergences = KnownDivergences(path, key, kinds);
  if (chosen.divergences.empty()) {
    TQ_ASSIGN_OR_RETURN(chosen.divergences,
                        Measure(source, options, calibration->Samples(), output, flags, console));
    const OrderedJson json = {{"key", key}, {"divergences", chosen.divergences}};
    TQ_RETURN_IF_ERROR(WriteFile(path, json.dump(1) + "\n"));
  }
  TQ_ASSIGN_OR_RETURN(chosen.plan,
                      AllocateBits(chosen.candidates, chosen.divergences, target_bits_per_weight));
  return chosen;
}

QuantizeSettings WithBits(QuantizeSettings settings, const TargetBits& chosen) {
  std::map<int, int64_t> weights;
  for (const BitCandidate& candidate : chosen.candidates) {
    weights[chosen.plan.bits.at(candidate.path)] += candidate.weights;
  }
  const auto most = std::max_element(weights.begin(), weights.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  settings.bits = most->first;
  settings.path_bits = chosen.plan.bits;
  return settings;
}

std::string BitsTable(const TargetBits& chosen) {
  std::vector<std::vector<std::string>> rows = {
      {"kind", "weights", fmt::format("KL at {}", kMeasuredBits), "matrices at 2, 3, 4", "bits"}};
  for (const auto& [name, kind] : Summaries(chosen)) {
    const auto at = [&matrices = kind.matrices](int bits) {
      const auto found = matrices.find(bits);
      return found == matrices.end() ? int64_t{0} : found->second;
    };
    rows.push_back({name, HumanCount(static_cast<double>(kind.weights)),
                    fmt::format("{:.4f}", chosen.divergences.at(name)),
                    fmt::format("{}, {}, {}", at(2), at(3), at(4)),
                    fmt::format("{:.2f}", Bits(kind))});
  }
  return FormatTable(rows, {false, true, true, true, true});
}

OrderedJson BitsJson(const TargetBits& chosen) {
  OrderedJson kinds = OrderedJson::object();
  for (const auto& [name, kind] : Summaries(chosen)) {
    OrderedJson matrices = OrderedJson::object();
    for (const auto& [bits, count] : kind.matrices) matrices[std::to_string(bits)] = count;
    kinds[name] = {{"weights", kind.weights},
                   {"measured_kl", chosen.divergences.at(name)},
                   {"bits_per_weight", Bits(kind)},
                   {"matrices_at_bits", matrices}};
  }
  return {
      {"expected_kl", chosen.plan.divergence}, {"measured_bits", kMeasuredBits}, {"kinds", kinds}};
}

}  // namespace tq
