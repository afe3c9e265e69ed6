#include "quantize/kind_divergence.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/spec.h"
#include "quantize/convert_plan.h"
#include "quantize/layered_source.h"

namespace tq {
namespace {

// Removed again, whatever happens.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<std::vector<ConvertItem>> QuantizedItems(const WeightSource& source,
                                                const ConvertOptions& options, int bits) {
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec model, ParseModelSpec(config, source.facts()));
  std::vector<std::string> warnings;
  TQ_ASSIGN_OR_RETURN(std::vector<ConvertItem> items,
                      PlanConversion(source, model, UniformBits(options, bits), warnings));
  std::erase_if(items, [](const ConvertItem& item) { return !item.quantize; });
  return items;
}

}  // namespace

ConvertOptions UniformBits(const ConvertOptions& options, int bits) {
  ConvertOptions out = options;
  out.settings.bits = bits;
  out.settings.attn_bits.reset();
  out.settings.mlp_bits.reset();
  out.settings.path_bits.clear();
  return out;
}

Result<std::vector<BitCandidate>> ListBitCandidates(const WeightSource& source,
                                                    const ConvertOptions& options) {
  std::vector<BitCandidate> candidates;
  for (size_t tier = 0; tier < kBitTiers.size(); ++tier) {
    TQ_ASSIGN_OR_RETURN(const std::vector<ConvertItem> items,
                        QuantizedItems(source, options, kBitTiers[tier]));
    candidates.resize(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      candidates[i].path = items[i].path;
      candidates[i].weights = items[i].weights();
      candidates[i].bytes[tier] = items[i].output_bytes;
    }
  }
  return candidates;
}

Result<std::map<std::string, double>> MeasureKinds(const WeightSource& source,
                                                   const ConvertOptions& options,
                                                   const std::string& folder,
                                                   const DivergenceOf& divergence_of) {
  TQ_ASSIGN_OR_RETURN(const std::vector<ConvertItem> items,
                      QuantizedItems(source, options, kMeasuredBits));
  std::map<std::string, std::vector<std::string>> paths_of;
  int64_t total = 0;
  for (const ConvertItem& item : items) {
    std::vector<std::string>& paths = paths_of[KindOfPath(item.path)];
    paths.insert(paths.end(), item.sources.begin(), item.sources.end());
    total += item.weights();
  }
  std::map<std::string, double> divergences;
  int64_t done = 0;
  for (const auto& [kind, paths] : paths_of) {
    const TemporaryFolder temporary(folder);
    ConvertOptions convert = UniformBits(options, kMeasuredBits);
    convert.only_kind = kind;
    convert.progress = [&](int64_t now, int64_t) {
      if (options.progress) options.progress(done + now, total);
    };
    TQ_ASSIGN_OR_RETURN(const ConvertReport report, Convert(source, temporary.path(), convert));
    done += report.quantized_weights;
    TQ_ASSIGN_OR_RETURN(const auto part, OpenSource(temporary.path()));
    const LayeredSource layered(source, *part, paths);
    TQ_ASSIGN_OR_RETURN(divergences[kind], divergence_of(layered));
  }
  return divergences;
}

}  // namespace tq
