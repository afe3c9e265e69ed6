#include "apps/convert_export.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "apps/terminal.h"
#include "base/json.h"
#include "quantize/export.h"

namespace tq {
namespace {

double WeightsPerSecond(const ExportReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.total_weights) / report.seconds : 0;
}

OrderedJson ReportJson(const std::string& source, const std::string& output,
                       const ExportReport& report) {
  return {{"source", source},
          {"output", output},
          {"type", report.type},
          {"tensors", report.tensors},
          {"total_weights", report.total_weights},
          {"source_bytes", report.source_bytes},
          {"output_bytes", report.output_bytes},
          {"seconds", report.seconds},
          {"million_weights_per_second", WeightsPerSecond(report) * 1e-6},
          {"warnings", report.warnings}};
}

std::string ReportText(const std::string& source, const std::string& output,
                       const ExportReport& report) {
  const auto bytes = [](int64_t n) { return HumanBytes(static_cast<double>(n)); };
  return FormatTable(
      {{"source", bytes(report.source_bytes), source},
       {"output", bytes(report.output_bytes), output},
       {"tensors", std::to_string(report.tensors),
        fmt::format("{} weights, matrices as {}",
                    HumanCount(static_cast<double>(report.total_weights)), report.type)},
       {"time", fmt::format("{:.1f} s", report.seconds),
        fmt::format("{:.1f} M weights/s", WeightsPerSecond(report) * 1e-6)}},
      {});
}

}  // namespace

void AddExportFlags(CLI::App& app, ExportFlags& flags) {
  app.add_option("--to", flags.to,
                 "turboquant; hf: plain floats in Hugging Face layout; gguf: one GGUF file (llama, "
                 "mistral, qwen2, qwen3, gemma3)")
      ->check(CLI::IsMember({"turboquant", "hf", "gguf"}))
      ->capture_default_str()
      ->group("Export");
  app.add_option("--type", flags.type, "--to gguf: of the matrices, f16 or q8_0")
      ->check(CLI::IsMember({"f16", "q8_0"}))
      ->capture_default_str()
      ->group("Export");
}

Status CheckExportFlags(const CLI::App& app, const ExportFlags& flags) {
  constexpr std::string_view kAlways[] = {"--hf-path", "--mlx-path", "--to", "--streaming"};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (option->get_group() == "Common" || option->get_group().empty() ||
        std::find(std::begin(kAlways), std::end(kAlways), name) != std::end(kAlways)) {
      continue;
    }
    const std::string_view belongs_to = name == "--type" ? "gguf" : "turboquant";
    const bool of_both = name == "--max-shard-size" || name == "--dtype";
    if (belongs_to == flags.to || (of_both && flags.to == "hf")) continue;
    return InvalidArgument(fmt::format("{} is a setting of --to {}, found --to {}: leave it out",
                                       name, belongs_to, flags.to));
  }
  return Status::Ok();
}

Status RunExport(const ExportFlags& flags, const std::string& source_path,
                 const std::string& output, const CommonFlags& common, int64_t max_shard_bytes,
                 Interrupts& interrupts) {
  const Console console = MakeConsole(common.quiet);
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(source_path));
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  if (flags.dtype == "float32") {
    return InvalidArgument("--dtype: expected bfloat16 or float16 with --to hf, found float32");
  }
  ProgressBar bar(console, "exporting", HumanCount, " weights");
  ExportOptions options;
  if (!flags.dtype.empty()) options.dtype = flags.dtype == "float16" ? DType::kF16 : DType::kBf16;
  options.matrices = flags.type == "q8_0" ? GgufMatrices::kQ8_0 : GgufMatrices::kF16;
  options.num_threads = common.threads;
  options.max_shard_bytes = max_shard_bytes;
  options.cancel = &cancel;
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  const Result<ExportReport> report = flags.to == "hf" ? ExportHuggingFace(*source, output, options)
                                                       : ExportGguf(*source, output, options);
  bar.Erase();
  if (!report.ok()) return report.status();
  if (common.json) return WriteJson(ReportJson(source_path, output, *report));
  for (const std::string& warning : report->warnings) PrintWarning(warning);
  if (common.quiet) return Status::Ok();
  return WriteOut(ReportText(source_path, output, *report));
}

}  // namespace tq
