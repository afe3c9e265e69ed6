// turboquant convert: a checkpoint -> a TurboQuant checkpoint, plain floats or a GGUF file.
#include "quantize/convert.h"

#include <atomic>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/convert_dry_run.h"
#include "apps/convert_export.h"
#include "apps/flags.h"
#include "apps/output.h"
#include "apps/terminal.h"
#include "base/json.h"

namespace tq {
namespace {

struct ConvertFlags {
  CommonFlags common;
  std::string source;
  std::string output;
  ExportFlags target;
  int64_t max_shard_bytes = ConvertOptions().max_shard_bytes;
  QuantizeSettings settings;
  std::string rounding = "rms";
  std::string calibration;
  bool streaming = false;
  bool resume = false;
  bool dry_run = false;
};

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

Status RunConvert(ConvertFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  flags.settings.rotate = flags.settings.rotation != "none";
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.source));
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ProgressBar bar(console, "converting", HumanCount, " weights");
  ConvertOptions options;
  options.settings = flags.settings;
  options.rounding = flags.rounding == "search" ? Rounding::kSearch : Rounding::kRms;
  options.calibration = flags.calibration;
  options.num_threads = flags.common.threads;
  options.max_shard_bytes = flags.max_shard_bytes;
  options.resume = flags.resume;
  if (flags.dry_run) return RunDryRun(*source, flags.output, options, flags.common.json);
  options.cancel = &cancel;
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  const Result<ConvertReport> report = Convert(*source, flags.output, options);
  bar.Erase();
  if (!report.ok()) return report.status();
  if (flags.common.json) return WriteJson(ReportJson(flags, report.value()));
  for (const std::string& warning : report.value().warnings) PrintWarning(warning);
  if (flags.common.quiet) return Status::Ok();
  return WriteOut(ReportText(flags, report.value()));
}

std::string DefaultOutput(std::string_view to) {
  if (to == "gguf") return "model.gguf";
  return to == "hf" ? "hf_model" : "mlx_model";
}

void AddSettings(CLI::App& app, QuantizeSettings& settings) {
  app.add_option("-b,--bits", settings.bits, "Bits per weight")
      ->check(CLI::IsMember({2, 3, 4}))
      ->capture_default_str();
  app.add_option("-g,--group-size", settings.group_size, "Weights that share a scale")
      ->check(CLI::IsMember({32, 64, 128}))
      ->capture_default_str();
  app.add_option("--rotation", settings.rotation,
                 "hadamard, blockwise_hadamard (the same), or none")
      ->check(CLI::IsMember({"hadamard", "blockwise_hadamard", "none"}))
      ->capture_default_str();
  app.add_option("--rotation-seed", settings.rotation_seed, "Seed of the signs")
      ->capture_default_str();
  app.add_option("--attn-bits", settings.attn_bits, "Bits of attention matrices")
      ->check(CLI::IsMember({2, 3, 4}));
  app.add_option("--mlp-bits", settings.mlp_bits, "Bits of feed-forward matrices")
      ->check(CLI::IsMember({2, 3, 4}));
  app.add_option("--mlp-group-size", settings.mlp_group_size, "Group of feed-forward matrices")
      ->check(CLI::IsMember({16, 32, 64, 128}));
}

}  // namespace

RunCommand RegisterConvert(CLI::App& app) {
  const auto flags = std::make_shared<ConvertFlags>();
  app.add_option("--hf-path,--model,--source", flags->source,
                 "Checkpoint to convert: a folder in Hugging Face layout, or a .gguf file")
      ->required();
  app.add_option("--mlx-path,--out,--output", flags->output,
                 "New folder, or .gguf file; it must not exist [mlx_model, hf_model, model.gguf]");
  AddExportFlags(app, flags->target);
  AddSettings(app, flags->settings);
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
  app.add_option("--max-shard-size", flags->max_shard_bytes,
                 "Bytes of a .safetensors file, as 5000000000 or 5GB")
      ->transform(CLI::AsSizeValue(true))
      ->check(InRange<int64_t>(1, int64_t{1} << 50))
      ->capture_default_str();
  app.add_flag("--dry-run", flags->dry_run,
               "Only say what would be written, how large, and about how long it takes");
  app.add_flag("--resume", flags->resume,
               "Keep finished files when interrupted, and go on from those that are there");
  app.add_flag("--streaming", flags->streaming, "Accepted: memory is always bounded");
  AddCommonFlags(app, flags->common, Compute::kThreads);
  SetExamples(
      app, {"turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit",
            "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-mixed --bits 2 "
            "--attn-bits 4",
            "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit --calibration "
            "Qwen3-8B.calibration",
            "turboquant convert --hf-path model.gguf --mlx-path model-4bit --bits 4 --json",
            "turboquant convert --to gguf --type q8_0 --hf-path Qwen3-8B-3bit --out Qwen3-8B.gguf",
            "turboquant convert --to hf --hf-path Qwen3-8B-3bit --out Qwen3-8B-bf16"});
  return [flags, &app](Interrupts& interrupts) {
    TQ_RETURN_IF_ERROR(CheckExportFlags(app, flags->target));
    if (flags->output.empty()) flags->output = DefaultOutput(flags->target.to);
    if (flags->target.to == "turboquant") return RunConvert(*flags, interrupts);
    return RunExport(flags->target, flags->source, flags->output, flags->common,
                     flags->max_shard_bytes, interrupts);
  };
}

}  // namespace tq
