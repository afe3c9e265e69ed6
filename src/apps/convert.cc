// turboquant convert: a checkpoint -> a TurboQuant checkpoint, plain floats or a GGUF file.
#include "quantize/convert.h"

#include <atomic>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/convert_dry_run.h"
#include "apps/convert_export.h"
#include "apps/flags.h"
#include "apps/hub_flags.h"
#include "apps/output.h"
#include "apps/quantize_flags.h"
#include "apps/target_bits.h"
#include "apps/terminal.h"
#include "base/file.h"
#include "base/json.h"
#include "quantize/model_card.h"
#include "quantize/recipe.h"

namespace tq {
namespace {

struct ConvertFlags {
  CommonFlags common;
  std::string source;
  std::string output;
  ExportFlags target;
  QuantizeFlags quantize;
  std::string dtype;
  int64_t max_shard_bytes = ConvertOptions().max_shard_bytes;
  bool keep_mtp = false;
  std::string rounding = "search";
  std::string calibration;
  bool sequential = false;
  double target_bits = 0;  // per weight; 0: settings decide
  bool streaming = false;
  bool resume = false;
  bool dry_run = false;
  bool trust_remote_code = false;
};

double WeightsPerSecond(const ConvertReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.total_weights) / report.seconds : 0;
}

OrderedJson ReportJson(const ConvertFlags& flags, const ConvertReport& report,
                       const std::optional<TargetBits>& chosen) {
  OrderedJson json = {{"source", flags.source},
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
  if (chosen) json["widths"] = BitsJson(*chosen);
  return json;
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
    flags.output = SourceName(flags.source) + "-" +
                   (flags.target_bits > 0 ? fmt::format("{}bpw", flags.target_bits)
                                          : RecipeName(options.settings));
  }
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.source));
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  options.dtype = DTypeOf(flags.dtype);
  options.keep_mtp = flags.keep_mtp;
  options.rounding = flags.rounding == "rms" ? Rounding::kRms : Rounding::kSearch;
  options.calibration = flags.calibration;
  options.num_threads = flags.common.threads;
  options.max_shard_bytes = flags.max_shard_bytes;
  options.resume = flags.resume;
  options.cancel = &cancel;
  std::optional<TargetBits> chosen;
  if (flags.target_bits > 0) {
    if (FileExists(flags.output) && !flags.dry_run) {  // before the long work
      return InvalidArgument(flags.output + " exists already: choose a new folder");
    }
    TQ_ASSIGN_OR_RETURN(chosen, ChooseBits(*source, options, flags.target_bits, flags.output,
                                           flags.common, console));
    options.settings = WithBits(options.settings, *chosen);
    if (!flags.common.json && !flags.common.quiet) TQ_RETURN_IF_ERROR(WriteOut(BitsTable(*chosen)));
  }
  if (flags.dry_run) return RunDryRun(*source, flags.output, options, flags.common.json);
  std::unique_ptr<Backend> backend;
  if (flags.sequential) {
    BackendOptions backend_options = BackendOptionsOf(flags.common);
    backend_options.activations = ActivationMode::kF32;
    TQ_ASSIGN_OR_RETURN(backend, MakeBackend(flags.common.backend, backend_options));
    options.sequential = backend.get();
  }
  ProgressBar bar(console, "converting", HumanCount, " weights");
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  Result<ConvertReport> report = Convert(*source, flags.output, options);
  bar.Erase();
  if (!report.ok()) return report.status();
  report->warnings.insert(report->warnings.begin(), warnings.begin(), warnings.end());
  if (flags.common.json) return WriteJson(ReportJson(flags, report.value(), chosen));
  for (const std::string& warning : report.value().warnings) PrintWarning(warning);
  if (flags.common.quiet) return Status::Ok();
  return WriteOut(ReportText(flags, report.value()));
}

}  // namespace

RunCommand RegisterConvert(CLI::App& app) {
  const auto flags = std::make_shared<ConvertFlags>();
  app.add_option("--hf-path,--model,--source", flags->source,
                 "Checkpoint to convert: a folder in Hugging Face layout, a .gguf file, or the "
                 "ORG/NAME of a repository that `turboquant pull` has downloaded")
      ->required()
      ->transform(ModelPath());
  app.add_option(
      "--mlx-path,--out,--output", flags->output,
      "New folder, or .gguf file; it must not exist [the source's name and the recipe's, "
      "like Qwen3-8B-tq3-g64; Qwen3-8B-hf; Qwen3-8B.gguf]");
  AddExportFlags(app, flags->target);
  AddQuantizeFlags(app, flags->quantize);
  app.add_option("--dtype", flags->dtype,
                 "Type of the floats that are kept, and of all of --to hf: float16, bfloat16, "
                 "float32 [the source's]")
      ->check(CLI::IsMember({"float16", "bfloat16", "float32"}));
  app.add_flag("--keep-mtp", flags->keep_mtp,
               "Keep the draft head (mtp.*), as model-mtp.safetensors");
  CLI::Option* rounding =
      app.add_option("--rounding", flags->rounding,
                     "search: the scale of each group with the least error; rms: the bytes of the "
                     "published converter, same size")
          ->check(CLI::IsMember({"rms", "search"}))
          ->capture_default_str();
  CLI::Option* calibration =
      app.add_option("--calibration", flags->calibration,
                     "File of `turboquant calibrate` for this checkpoint: least error in the "
                     "layers' outputs")
          ->excludes(rounding);
  app.add_flag("--sequential", flags->sequential,
               "Round matrix after matrix on the calibration's samples, so that each makes up for "
               "the ones before it: slower, closer to the original")
      ->needs(calibration);
  CLI::Option* target =
      app.add_option("--target-bpw", flags->target_bits,
                     "Choose each matrix's width for this many bits per quantized weight, scales "
                     "included, by what its kind costs on the calibration's text")
          ->check(InRange(0.1, 64.0))
          ->needs(calibration);
  for (const char* width :
       {"--bits", "--attn-bits", "--mlp-bits", "--recipe", "--ternary-experts",
        "--expert-down-bits", "--protect-expert-layers", "--expert-layer-tiers"}) {
    target->excludes(app.get_option(width));
  }
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
  app.add_flag("--trust-remote-code", flags->trust_remote_code,
               "Accepted: the source's code is copied, never run");
  AddCommonFlags(app, flags->common, Compute::kThreads);
  SetExamples(
      app, {"turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit",
            "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-mixed --bits 2 "
            "--attn-bits 4",
            "turboquant convert --hf-path Qwen3-30B-A3B --recipe tq3a-tqTe-down4-g64 "
            "--quantize-extras",
            "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit --calibration "
            "Qwen3-8B.calibration",
            "turboquant convert --hf-path Qwen3-8B --target-bpw 3.3 --calibration "
            "Qwen3-8B.calibration",
            "turboquant convert --hf-path model.gguf --mlx-path model-4bit --bits 4 --json",
            "turboquant convert --to gguf --type q8_0 --hf-path Qwen3-8B-3bit --out Qwen3-8B.gguf",
            "turboquant convert --to hf --hf-path Qwen3-8B-3bit --out Qwen3-8B-bf16"});
  app.footer(RecipeHelp() + "\n" + app.get_footer());
  return [flags, &app](Interrupts& interrupts) {
    TQ_RETURN_IF_ERROR(CheckExportFlags(app, flags->target));
    if (flags->target.to == "turboquant") return RunConvert(*flags, interrupts);
    if (flags->output.empty()) {
      flags->output = SourceName(flags->source) + (flags->target.to == "gguf" ? ".gguf" : "-hf");
    }
    flags->target.dtype = flags->dtype;
    return RunExport(flags->target, flags->source, flags->output, flags->common,
                     flags->max_shard_bytes, interrupts);
  };
}

}  // namespace tq
