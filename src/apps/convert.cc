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
#include "apps/target_bits.h"
#include "apps/terminal.h"
#include "base/file.h"
#include "base/json.h"

namespace tq {
namespace {

struct ConvertFlags {
  CommonFlags common;
  std::string source;
  std::string output = "mlx_model";
  QuantizeSettings settings;
  std::string rounding = "search";
  std::string calibration;
  double target_bits = 0;  // per weight; 0: settings decide
  bool streaming = false;
};

double BitsPerWeight(int64_t bytes, int64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

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

Status RunConvert(ConvertFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  flags.settings.rotate = flags.settings.rotation != "none";
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source, OpenSource(flags.source));
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ConvertOptions options;
  options.settings = flags.settings;
  options.rounding = flags.rounding == "rms" ? Rounding::kRms : Rounding::kSearch;
  options.calibration = flags.calibration;
  options.num_threads = flags.common.threads;
  options.cancel = &cancel;
  std::optional<TargetBits> chosen;
  if (flags.target_bits > 0) {
    if (FileExists(flags.output) || IsDirectory(flags.output)) {  // before the long work
      return InvalidArgument(flags.output + " exists already: choose a new folder");
    }
    TQ_ASSIGN_OR_RETURN(chosen, ChooseBits(*source, options, flags.target_bits, flags.output,
                                           flags.common, console));
    options.settings = WithBits(flags.settings, *chosen);
    if (!flags.common.json && !flags.common.quiet) TQ_RETURN_IF_ERROR(WriteOut(BitsTable(*chosen)));
  }
  ProgressBar bar(console, "converting", HumanCount, " weights");
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  const Result<ConvertReport> report = Convert(*source, flags.output, options);
  bar.Erase();
  if (!report.ok()) return report.status();
  if (flags.common.json) return WriteJson(ReportJson(flags, report.value(), chosen));
  for (const std::string& warning : report.value().warnings) PrintWarning(warning);
  if (flags.common.quiet) return Status::Ok();
  return WriteOut(ReportText(flags, report.value()));
}

// Returns the options that set widths.
std::vector<CLI::Option*> AddSettings(CLI::App& app, QuantizeSettings& settings) {
  std::vector<CLI::Option*> widths;
  widths.push_back(app.add_option("-b,--bits", settings.bits, "Bits per weight")
                       ->check(CLI::IsMember({2, 3, 4}))
                       ->capture_default_str());
  app.add_option("-g,--group-size", settings.group_size, "Weights that share a scale")
      ->check(CLI::IsMember({32, 64, 128}))
      ->capture_default_str();
  app.add_option("--rotation", settings.rotation,
                 "hadamard, blockwise_hadamard (the same), or none")
      ->check(CLI::IsMember({"hadamard", "blockwise_hadamard", "none"}))
      ->capture_default_str();
  app.add_option("--rotation-seed", settings.rotation_seed, "Seed of the signs")
      ->capture_default_str();
  widths.push_back(app.add_option("--attn-bits", settings.attn_bits, "Bits of attention matrices")
                       ->check(CLI::IsMember({2, 3, 4})));
  widths.push_back(app.add_option("--mlp-bits", settings.mlp_bits, "Bits of feed-forward matrices")
                       ->check(CLI::IsMember({2, 3, 4})));
  app.add_option("--mlp-group-size", settings.mlp_group_size, "Group of feed-forward matrices")
      ->check(CLI::IsMember({16, 32, 64, 128}));
  return widths;
}

}  // namespace

RunCommand RegisterConvert(CLI::App& app) {
  const auto flags = std::make_shared<ConvertFlags>();
  app.add_option("--hf-path,--model,--source", flags->source,
                 "Checkpoint to convert: a folder in Hugging Face layout, or a .gguf file")
      ->required();
  app.add_option("--mlx-path,--out,--output", flags->output, "New folder; it must not exist")
      ->capture_default_str();
  const std::vector<CLI::Option*> widths = AddSettings(app, flags->settings);
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
  CLI::Option* target =
      app.add_option("--target-bpw", flags->target_bits,
                     "Choose each matrix's width for this many bits per quantized weight, scales "
                     "included, by what its kind costs on the calibration's text")
          ->check(InRange(0.1, 64.0))
          ->needs(calibration);
  for (CLI::Option* width : widths) target->excludes(width);
  app.add_flag("--streaming", flags->streaming, "Accepted: memory is always bounded");
  AddCommonFlags(app, flags->common, Compute::kThreads);
  SetExamples(app,
              {"turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit",
               "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-mixed --bits 2 "
               "--attn-bits 4",
               "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit --calibration "
               "Qwen3-8B.calibration",
               "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3.3 --target-bpw 3.3 "
               "--calibration Qwen3-8B.calibration",
               "turboquant convert --hf-path model.gguf --mlx-path model-4bit --bits 4 --json"});
  return [flags](Interrupts& interrupts) { return RunConvert(*flags, interrupts); };
}

}  // namespace tq
