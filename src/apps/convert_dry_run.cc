#include "apps/convert_dry_run.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "apps/terminal.h"
#include "base/json.h"
#include "quantize/dry_run.h"

namespace tq {
namespace {

std::string Bytes(int64_t bytes) { return HumanBytes(static_cast<double>(bytes)); }
std::string Count(int64_t count) { return HumanCount(static_cast<double>(count)); }

// "3-bit", "trit"
std::string WidthName(int codebook_entries) {
  if (codebook_entries == 3) return "trit";
  return fmt::format("{:.0f}-bit", std::log2(codebook_entries));
}

std::string TimeText(const DryRunReport& report) {
  if (!report.weights_per_second) return "not estimated: a calibration's speed depends on shapes";
  return fmt::format("encoding alone, measured now: {:.1f} M weights/s; the disk may be slower",
                     *report.weights_per_second * 1e-6);
}

OrderedJson ReportJson(const std::string& source, const std::string& output,
                       const DryRunReport& report) {
  const ConvertReport& totals = report.totals;
  OrderedJson widths = OrderedJson::array();
  for (const DryRunReport::Width& width : report.widths) {
    widths.push_back({{"width", WidthName(width.codebook_entries)},
                      {"bits", std::log2(width.codebook_entries)},
                      {"group", width.group},
                      {"matrices", width.matrices},
                      {"weights", width.weights},
                      {"bytes", width.bytes},
                      {"bits_per_weight", BitsPerWeight(width.bytes, width.weights)}});
  }
  OrderedJson kept = OrderedJson::array();
  for (const DryRunReport::Kept& entry : report.kept) {
    kept.push_back({{"reason", entry.reason},
                    {"tensors", entry.tensors},
                    {"weights", entry.weights},
                    {"bytes", entry.bytes}});
  }
  OrderedJson json = {{"source", source},
                      {"output", output},
                      {"source_bytes", totals.source_bytes},
                      {"output_bytes", totals.output_bytes},
                      {"shards", report.shards},
                      {"free_bytes", report.free_bytes},
                      {"fits", report.free_bytes >= totals.output_bytes},
                      {"output_exists", report.output_exists},
                      {"quantized_weights", totals.quantized_weights},
                      {"quantized_bits_per_weight",
                       BitsPerWeight(totals.quantized_bytes, totals.quantized_weights)},
                      {"total_weights", totals.total_weights},
                      {"bits_per_weight", BitsPerWeight(totals.output_bytes, totals.total_weights)},
                      {"widths", widths},
                      {"kept", kept},
                      {"estimated_seconds", nullptr},
                      {"encode_million_weights_per_second", nullptr},
                      {"estimate_basis", TimeText(report)},
                      {"warnings", totals.warnings}};
  if (report.weights_per_second) {
    json["estimated_seconds"] = *report.seconds();
    json["encode_million_weights_per_second"] = *report.weights_per_second * 1e-6;
  }
  return json;
}

std::string ReportText(const std::string& source, const std::string& output,
                       const DryRunReport& report) {
  const ConvertReport& totals = report.totals;
  std::vector<std::vector<std::string>> rows = {
      {"source", Bytes(totals.source_bytes), source},
      {"output", Bytes(totals.output_bytes),
       fmt::format("{} ({} .safetensors)", output, report.shards)},
      {"free there", Bytes(report.free_bytes),
       report.free_bytes >= totals.output_bytes ? "enough" : "NOT enough"},
      {"quantized", fmt::format("{} weights", Count(totals.quantized_weights)),
       fmt::format("{:.3f} bits each",
                   BitsPerWeight(totals.quantized_bytes, totals.quantized_weights))},
      {"overall", fmt::format("{} weights", Count(totals.total_weights)),
       fmt::format("{:.3f} bits each", BitsPerWeight(totals.output_bytes, totals.total_weights))},
      {"time", report.weights_per_second ? fmt::format("{:.1f} s", *report.seconds()) : "?",
       TimeText(report)}};
  for (const DryRunReport::Width& width : report.widths) {
    rows.push_back({WidthName(width.codebook_entries), fmt::format("{} matrices", width.matrices),
                    fmt::format("group {}, {} weights, {}", width.group, Count(width.weights),
                                Bytes(width.bytes))});
  }
  for (const DryRunReport::Kept& entry : report.kept) {
    rows.push_back({"float",
                    fmt::format("{} tensor{}", entry.tensors, entry.tensors == 1 ? "" : "s"),
                    fmt::format("{}; {}", Bytes(entry.bytes), entry.reason)});
  }
  return FormatTable(rows, {});
}

}  // namespace

Status RunDryRun(const WeightSource& source, const std::string& output,
                 const ConvertOptions& options, bool json) {
  TQ_ASSIGN_OR_RETURN(const DryRunReport report, DryRun(source, output, options));
  if (json) return WriteJson(ReportJson(source.path(), output, report));
  for (const std::string& warning : report.totals.warnings) PrintWarning(warning);
  if (report.output_exists) {
    PrintWarning(output + " exists already: the conversion would be refused");
  }
  return WriteOut(ReportText(source.path(), output, report));
}

}  // namespace tq
