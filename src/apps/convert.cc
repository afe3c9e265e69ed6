// turboquant convert: a checkpoint -> a TurboQuant checkpoint.
#include "quantize/convert.h"

#include <atomic>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output.h"
#include "apps/quantize_flags.h"
#include "apps/terminal.h"
#include "base/json.h"
#include "quantize/model_card.h"
#include "quantize/recipe.h"

namespace tq {
namespace {

struct ConvertFlags {
  CommonFlags common;
  std::string source;
  std::string output;
  QuantizeFlags quantize;
  std::string dtype;
  bool keep_mtp = false;
  std::string rounding = "rms";
  std::string calibration;
  bool streaming = false;
  bool trust_remote_code = false;
};

double BitsPerWeight(int64_t bytes, int64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

double WeightsPerSecond(const ConvertReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.total_weights) / report.seconds : 0;
}

OrderedJson ReportJson(const ConvertFlags& flags, const ConvertReport& report) {
  return {{"source", flags.source},
          {"output", flags.output},
          {"source_bytes", report.source_bytes},
          {"output_bytes", report.output_bytes},
          {"quantized_matrices", report.quantized_matrices},
          {"quantized_weights", report.quantized_weights},
          {"quantized_bits_per_weight",
           BitsPerWeight(report.quantized_bytes, report.quantized_weights)},
          {"total_weights", report.total_weights},
          {"bits_per_weight", BitsPerWeight(report.output_bytes, report.total_weights)},
          {"seconds", report.seconds},
          {"million_weights_per_second", WeightsPerSecond(report) * 1e-6},
          {"warnings", report.warnings}};
}

std::string ReportText(const ConvertFlags& flags, const ConvertReport& report) {
  const auto bytes = [](int64_t n) { return HumanBytes(static_cast<double>(n)); };
  return FormatTable(
      {{"source", bytes(report.source_bytes), flags.source},
       {"output", bytes(report.output_bytes), flags.output},
       {"quantized", fmt::format("{} matrices", report.quantized_matrices),
        fmt::format("{} weights, {:.3f} bits each",
                    HumanCount(static_cast<double>(report.quantized_weights)),
                    BitsPerWeight(report.quantized_bytes, report.quantized_weights))},
       {"overall", fmt::format("{} weights", HumanCount(static_cast<double>(report.total_weights))),
        fmt::format("{:.3f} bits each", BitsPerWeight(report.output_bytes, report.total_weights))},
       {"time", fmt::format("{:.1f} s", report.seconds),
        fmt::format("{:.1f} M weights/s", WeightsPerSecond(report) * 1e-6)}},
      {});
}

std::optional<DType> DTypeOf(const std::string& name) {
  if (name == "float16") return DType::kF16;
  if (name == "bfloat16") return DType::kBf16;
  if (name == "float32") return DType::kF32;
  return std::nullopt;
}

Status RunConvert(ConvertFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  std::vector<std::string> warnings;
  ConvertOptions options;
  TQ_ASSIGN_OR_RETURN(options.settings, SettingsOf(flags.quantize, warnings));
  if (flags.output.empty()) {
    flags.output = SourceName(flags.source) + "-" + RecipeName(options.settings);
  }
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.source));
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ProgressBar bar(console, "converting", HumanCount, " weights");
  options.dtype = DTypeOf(flags.dtype);
  options.keep_mtp = flags.keep_mtp;
  options.rounding = flags.rounding == "search" ? Rounding::kSearch : Rounding::kRms;
  options.calibration = flags.calibration;
  options.num_threads = flags.common.threads;
  options.cancel = &cancel;
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  Result<ConvertReport> report = Convert(*source, flags.output, options);
  bar.Erase();
  if (!report.ok()) return report.status();
  report->warnings.insert(report->warnings.begin(), warnings.begin(), warnings.end());
  if (flags.common.json) return WriteJson(ReportJson(flags, report.value()));
  for (const std::string& warning : report.value().warnings) PrintWarning(warning);
  if (flags.common.quiet) return Status::Ok();
  return WriteOut(ReportText(flags, report.value()));
}

}  // namespace

RunCommand RegisterConvert(CLI::App& app) {
  const auto flags = std::make_shared<ConvertFlags>();
  app.add_option("--hf-path,--model,--source", flags->source,
                 "Checkpoint to convert: a folder in Hugging Face layout, or a .gguf file")
      ->required();
  app.add_option("--mlx-path,--out,--output", flags->output,
                 "New folder; it must not exist [the source's name and the recipe's, like "
                 "Qwen3-8B-tq3-g64]");
  AddQuantizeFlags(app, flags->quantize);
  app.add_option("--dtype", flags->dtype,
                 "Type of the floats that are kept: float16, bfloat16, float32 [the source's]")
      ->check(CLI::IsMember({"float16", "bfloat16", "float32"}));
  app.add_flag("--keep-mtp", flags->keep_mtp,
               "Keep the draft head (mtp.*), as model-mtp.safetensors");
  CLI::Option* rounding =
      app.add_option("--rounding", flags->rounding,
                     "rms: the published converter's bytes; search: the best scale of each "
                     "group, less error at the same size")
          ->check(CLI::IsMember({"rms", "search"}))
          ->capture_default_str();
  app.add_option(
         "--calibration", flags->calibration,
         "File of `turboquant calibrate` for this checkpoint: least error in the layers' outputs")
      ->excludes(rounding);
  app.add_flag("--streaming", flags->streaming, "Accepted: memory is always bounded");
  app.add_flag("--trust-remote-code", flags->trust_remote_code,
               "Accepted: the source's code is copied, never run");
  AddCommonFlags(app, flags->common, Compute::kThreads);
  SetExamples(app,
              {"turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit",
               "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-mixed --bits 2 "
               "--attn-bits 4",
               "turboquant convert --hf-path Qwen3-30B-A3B --recipe tq3a-tqTe-down4-g64 "
               "--quantize-extras",
               "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit --calibration "
               "Qwen3-8B.calibration",
               "turboquant convert --hf-path model.gguf --mlx-path model-4bit --bits 4 --json"});
  app.footer(RecipeHelp() + "\n" + app.get_footer());
  return [flags](Interrupts& interrupts) { return RunConvert(*flags, interrupts); };
}

}  // namespace tq
