// turboquant calibrate: what the matrices of a model see while it reads texts.
#include "quantize/calibrate.h"

#include <atomic>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output.h"
#include "base/file.h"

namespace tq {
namespace {

struct CalibrateFlags {
  CommonFlags common;
  std::string model;
  std::vector<std::string> texts;
  std::string output;
  int64_t num_samples = 32;
  int64_t seq_len = 512;
  double hessian_gb = 8;
};

Status RunCalibrate(const CalibrateFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ModelSession> session,
                      OpenSession(flags.model, flags.common, console));
  TQ_ASSIGN_OR_RETURN(const TextAssets* assets, session->LoadText());
  TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(*assets));
  std::vector<std::vector<int32_t>> texts;
  for (const std::string& path : flags.texts) {
    TQ_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
    TQ_RETURN_IF_ERROR(CheckUtf8(text, path));
    texts.push_back(tokenizer->Encode(text, {.add_special_tokens = true}));
  }
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  ProgressBar bar(console, "calibrating", HumanCount, " tokens");
  CalibrateOptions options;
  options.seq_len = flags.seq_len;
  options.num_samples = flags.num_samples;
  options.memory_bytes = static_cast<int64_t>(flags.hessian_gb * 1e9);
  options.num_threads = flags.common.threads;
  options.kv = session->kv();
  options.cancel = &cancel;
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  const Result<CalibrateReport> result = Calibrate(
      session->source(), session->model(), session->backend(), texts, flags.output, options);
  bar.Erase();
  if (!result.ok()) return result.status();
  const CalibrateReport& report = result.value();
  if (flags.common.json) {
    return WriteJson({{"output", flags.output},
                      {"samples", report.samples},
                      {"seq_len", flags.seq_len},
                      {"tokens", report.tokens},
                      {"inputs", report.inputs},
                      {"continued_inputs", report.continued_inputs},
                      {"passes", report.passes},
                      {"file_bytes", report.file_bytes},
                      {"seconds", report.seconds}});
  }
  if (flags.common.quiet) return Status::Ok();
  if (report.continued_inputs > 0) {
    PrintNote(console, fmt::format("continued: {} of {} inputs were there already",
                                   report.continued_inputs, report.inputs));
  }
  return WriteOut(fmt::format("{} tokens in {} samples, {} inputs, {} written to {} in {:.1f} s\n",
                              report.tokens, report.samples, report.inputs,
                              HumanBytes(static_cast<double>(report.file_bytes)), flags.output,
                              report.seconds));
}

}  // namespace

RunCommand RegisterCalibrate(CLI::App& app) {
  const auto flags = std::make_shared<CalibrateFlags>();
  flags->common.activations = "f32";
  AddModelFlag(app, flags->model);
  app.add_option("--text", flags->texts,
                 "Text file like what the model will read (chat markers count as such); several "
                 "give equal shares")
      ->required();
  app.add_option("--out,--output", flags->output, "File for `turboquant convert --calibration`")
      ->required();
  app.add_option("--num-samples,-n", flags->num_samples, "Samples at most")
      ->check(InRange(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--seq-len", flags->seq_len, "Tokens per sample")
      ->check(InRange(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--hessian-gb", flags->hessian_gb,
                 "Memory for what is gathered, in GB; when it is too small the texts are read "
                 "several times")
      ->check(InRange(1e-6, 1e6))
      ->capture_default_str();
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(app, {"turboquant calibrate --model Qwen3-8B --text chats.txt --text code.txt --out "
                    "Qwen3-8B.calibration",
                    "turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit --calibration "
                    "Qwen3-8B.calibration"});
  return [flags](Interrupts& interrupts) { return RunCalibrate(*flags, interrupts); };
}

}  // namespace tq
