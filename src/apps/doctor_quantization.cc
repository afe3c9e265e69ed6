#include "apps/doctor_quantization.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

constexpr const char* kId = "model.quantization";

// "turboquant 3-bit g64 hadamard" -> matrices.
std::map<std::string, int64_t> CountFormats(const CheckpointReport& report) {
  std::map<std::string, int64_t> formats;
  for (const MatrixKind& kind : report.kinds) {
    if (kind.shape.size() >= 2) formats[kind.format] += kind.count;
  }
  return formats;
}

// What config.json says; null: nothing.
Json QuantizationBlock(const WeightSource& source) {
  const Result<std::string> text = source.ReadDocument("config.json");
  if (!text.ok()) return {};
  const Result<Json> config = ParseJson(*text, "config.json");
  if (!config.ok() || !config->is_object()) return {};
  for (const char* key : {"quantization", "quantization_config"}) {
    const auto block = config->find(key);
    if (block != config->end() && block->is_object()) return *block;
  }
  return {};
}

bool IsTurboQuant(const std::string& format) { return format.starts_with("turboquant"); }

}  // namespace

void CheckQuantization(const WeightSource& source, const CheckpointReport& report,
                       Findings& findings) {
  const std::map<std::string, int64_t> formats = CountFormats(report);
  std::string found;
  bool coded = false;
  for (const auto& [format, count] : formats) {
    found += fmt::format("{}{} x {}", found.empty() ? "" : ", ", count, format);
    coded = coded || IsTurboQuant(format);
  }
  const Json block = QuantizationBlock(source);
  const auto mode = block.is_object() ? block.find("mode") : block.end();
  const bool says_coded =
      block.is_object() && mode != block.end() && mode->is_string() && *mode == "turboquant";
  if (coded != says_coded) {
    findings.push_back(
        {kId, FindingLevel::kFail,
         fmt::format("{}; config.json {}", found,
                     coded ? "has no `quantization` block of mode turboquant: whether codes are "
                             "rotated is not said"
                           : "says mode turboquant"),
         "config.json and weights are of different checkpoints: download both again"});
    return;
  }
  if (const auto group = block.is_object() ? block.find("group_size") : block.end();
      coded && group != block.end() && group->is_number_integer()) {
    const std::string wanted = fmt::format(" g{}", group->get<int64_t>());
    const bool any = std::any_of(formats.begin(), formats.end(), [&](const auto& entry) {
      const size_t at = entry.first.find(wanted);
      const size_t end = at + wanted.size();
      return at != std::string::npos && (end == entry.first.size() || entry.first[end] == ' ');
    });
    if (!any) {
      findings.push_back(
          {kId, FindingLevel::kWarn,
           fmt::format("{}; config.json says groups of {}", found, group->get<int64_t>()),
           "the scales decide and it runs; other programs may not: convert it again"});
      return;
    }
  }
  findings.push_back({kId, FindingLevel::kOk, found.empty() ? "no matrices" : found, ""});
}

}  // namespace tq
