// turboquant bench: how fast a model runs here: prefill, decoding at several depths and batch
// sizes, beside the memory bandwidth that the machine reaches.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/bench_report.h"
#include "apps/bench_restart.h"
#include "apps/command.h"
#include "apps/flags.h"
#include "apps/hub_flags.h"
#include "apps/kv_flags.h"
#include "apps/output.h"
#include "apps/run_stats.h"
#include "base/file.h"
#include "base/memory.h"
#include "cache/kv_cache.h"
#include "eval/bandwidth.h"
#include "eval/op_timer.h"
#include "eval/step_timer.h"
#include "eval/synthetic_size.h"
#include "eval/synthetic_source.h"

namespace tq {
namespace {

struct BenchFlags {
  CommonFlags common;
  std::string model;
  std::string synthetic;
  SyntheticOptions shapes;
  KvFlags kv;
  std::vector<int64_t> prefill = {512};
  std::vector<int64_t> depths = {0, 4096};
  std::vector<int> batches = {1, 4};
  int64_t chunk = 512;
  int repeat = 5;
  bool ops = false;
  std::string record;
  int64_t restart = 0;  // tokens; 0: not measured
};

// Weights, wherever they come from, on a backend.
struct Subject {
  std::unique_ptr<ModelSession> session;  // of a checkpoint
  std::unique_ptr<WeightSource> source;   // synthetic
  std::unique_ptr<Backend> backend;
  std::unique_ptr<const Model> owned;
  double load_seconds = 0;
  const Model& model() const { return session != nullptr ? session->model() : *owned; }
  Backend& backend_used() const { return session != nullptr ? session->backend() : *backend; }
};

// What the flags ask for, else as a session has it.
Result<KvSettings> KvSettingsOf(const BenchFlags& flags) {
  TQ_ASSIGN_OR_RETURN(const std::optional<KvSettings> kv, KvSettingsOf(flags.kv));
  return KvSettingsFor(BackendOptionsOf(flags.common).activations, kv);
}

// The largest cache of the run must fit beside the weights.
Status CheckFits(const BenchFlags& flags, const SyntheticModel& model, const KvSettings& kv) {
  const int64_t available = flags.common.memory_gb > 0
                                ? static_cast<int64_t>(flags.common.memory_gb * 1e9)
                                : AvailableMemoryBytes();
  if (available == 0) return Status::Ok();
  const int64_t context = model.spec.max_position_embeddings;
  int64_t pages = 0;
  for (const int64_t tokens : flags.prefill) {
    if (tokens <= context) pages = std::max(pages, KvCache::PagesFor(tokens));
  }
  const int64_t slots = *std::max_element(flags.batches.begin(), flags.batches.end());
  if (flags.restart > 0) pages = std::max(pages, KvCache::PagesFor(flags.restart + kPageTokens));
  for (const int64_t depth : flags.depths) {
    if (depth < context) pages = std::max(pages, KvCache::PagesFor(depth + 1) * slots);
  }
  return CheckSyntheticFits(model, MeasureSynthetic(model, kv, pages, slots), available);
}

Result<Subject> Load(const BenchFlags& flags, const KvSettings& kv, const Console& console) {
  Subject out;
  const auto begin = std::chrono::steady_clock::now();
  if (flags.synthetic.empty()) {
    TQ_ASSIGN_OR_RETURN(out.session, OpenSession(flags.model, flags.common, console));
  } else {
    TQ_ASSIGN_OR_RETURN(const SyntheticModel model, FindSynthetic(flags.synthetic, flags.shapes));
    TQ_ASSIGN_OR_RETURN(out.backend,
                        MakeBackend(flags.common.backend, BackendOptionsOf(flags.common)));
    TQ_RETURN_IF_ERROR(CheckFits(flags, model, kv));
    out.source = MakeSynthetic(model);
    ProgressBar bar(console, "making weights", HumanBytes, "");
    const LoadProgress report = [](void* context, int64_t done, int64_t total) {
      static_cast<ProgressBar*>(context)->Update(done, total);
    };
    TQ_ASSIGN_OR_RETURN(out.owned, Model::Load(*out.source, *out.backend, report, &bar));
    bar.Erase();
    out.source.reset();
  }
  out.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

class Measurement {
 public:
  Measurement(const BenchFlags& flags, const KvSettings& kv, const Subject& subject)
      : flags_(flags), kv_(kv), subject_(subject), ops_(subject.backend_used()) {}

  Result<std::vector<BenchRow>> Run() {
    const int64_t context = subject_.model().spec().max_position_embeddings;
    std::vector<BenchRow> rows;
    for (const int64_t tokens : flags_.prefill) {
      if (tokens > context) continue;
      TQ_RETURN_IF_ERROR(Prefill(tokens, rows));
    }
    for (const int64_t depth : flags_.depths) {
      for (const int batch : flags_.batches) {
        if (depth + 1 > context) continue;
        TQ_RETURN_IF_ERROR(Decode(batch, depth, rows));
      }
    }
    return rows;
  }

 private:
  Backend& backend() { return flags_.ops ? ops_ : subject_.backend_used(); }

  Status Prefill(int64_t tokens, std::vector<BenchRow>& rows) {
    TQ_ASSIGN_OR_RETURN(const auto timer,
                        StepTimer::Create(subject_.model(), backend(), kv_, tokens, 1));
    // The first one finds out how much room a step needs, the second one touches it.
    for (int i = 0; i < 2; ++i) timer->Step(1, std::min(flags_.chunk, tokens), 0);
    ops_.Reset();
    double seconds = 0;
    for (int64_t done = 0; done < tokens;) {
      const int64_t n = std::min(flags_.chunk, tokens - done);
      seconds += timer->Step(1, n, done);
      done += n;
    }
    rows.push_back({.phase = "prefill",
                    .batch = 1,
                    .depth = 0,
                    .tokens = tokens,
                    .seconds = seconds,
                    .ops = OpShares(seconds)});
    return Status::Ok();
  }

  Status Decode(int batch, int64_t depth, std::vector<BenchRow>& rows) {
    TQ_ASSIGN_OR_RETURN(const auto timer,
                        StepTimer::Create(subject_.model(), backend(), kv_, depth + 1, batch));
    timer->Step(batch, 1, depth);
    double best = 0;
    std::vector<OpShare> ops;  // of the best step
    for (int i = 0; i < flags_.repeat; ++i) {
      ops_.Reset();
      const double seconds = timer->Step(batch, 1, depth);
      if (i > 0 && seconds >= best) continue;
      best = seconds;
      ops = OpShares(seconds);
    }
    const auto bytes = static_cast<double>(subject_.model().decode_bytes());
    rows.push_back({.phase = "decode",
                    .batch = batch,
                    .depth = depth,
                    .tokens = batch,
                    .seconds = best,
                    .weight_bytes_per_second = batch == 1 ? bytes / best : 0,
                    .ops = std::move(ops)});
    return Status::Ok();
  }

  std::vector<OpShare> OpShares(double seconds) const {
    std::vector<OpShare> out;
    for (const OpTime& op : ops_.Times()) {
      out.push_back({std::string(op.name), op.seconds / seconds, op.calls});
    }
    return out;
  }

  const BenchFlags& flags_;
  KvSettings kv_;
  const Subject& subject_;
  OpTimer ops_;
};

BenchReport MakeReport(const BenchFlags& flags, const KvSettings& kv, const Subject& subject) {
  const Model& model = subject.model();
  const Backend& backend = subject.backend_used();
  return {.name = flags.synthetic.empty() ? flags.model : flags.synthetic,
          .bits = flags.synthetic.empty() ? 0 : flags.shapes.bits,
          .group_size = flags.synthetic.empty() ? 0 : flags.shapes.group_size,
          .model_type = model.spec().model_type,
          .layers = static_cast<int64_t>(model.spec().blocks.size()),
          .isa = std::string(backend.isa()),
          .activations = backend.activations() == ActivationMode::kInt8 ? "int8" : "f32",
          .threads = backend.num_threads(),
          .kv = KvSettingsText(kv),
          .prepared_bytes = model.prepared_bytes(),
          .decode_bytes = model.decode_bytes(),
          .load_seconds = subject.load_seconds};
}

Status PrintRestart(const BenchFlags& flags, const RestartTimes& times) {
  if (flags.common.json) {
    return WriteJson({{"model", flags.synthetic.empty() ? flags.model : flags.synthetic},
                      {"tokens", times.tokens},
                      {"cold_seconds", times.cold_seconds},
                      {"turn_seconds", times.turn_seconds},
                      {"flush_seconds", times.flush_seconds},
                      {"warm_seconds", times.warm_seconds},
                      {"prompt_tokens", times.prompt_tokens},
                      {"cached_tokens", times.cached_tokens},
                      {"bytes_on_disk", times.bytes_on_disk}});
  }
  return WriteOut(fmt::format(
      "first token of a prompt of {} tokens: {:.3f} s; of the next turn ({} tokens) after a "
      "restart: {:.3f} s ({:.1f} % of it), {} tokens from the disk\n"
      "{} on the disk; after the answer the engine ended in {:.3f} s\n",
      times.tokens, times.cold_seconds, times.prompt_tokens, times.warm_seconds,
      100 * times.warm_seconds / times.cold_seconds, times.cached_tokens,
      HumanBytes(static_cast<double>(times.bytes_on_disk)), times.flush_seconds));
}

Status RunBench(const BenchFlags& flags) {
  const Console console = MakeConsole(flags.common.quiet);
  if (flags.model.empty() == flags.synthetic.empty()) {
    return InvalidArgument("bench: expected --model or --synthetic, found " +
                           std::string(flags.model.empty() ? "neither" : "both"));
  }
  TQ_ASSIGN_OR_RETURN(const KvSettings kv, KvSettingsOf(flags));
  TQ_ASSIGN_OR_RETURN(const Subject subject, Load(flags, kv, console));
  if (flags.restart > 0) {
    TQ_ASSIGN_OR_RETURN(
        const RestartTimes times,
        MeasureRestart(subject.model(), subject.backend_used(), kv, flags.restart, flags.chunk));
    return PrintRestart(flags, times);
  }
  BenchReport report = MakeReport(flags, kv, subject);
  // Memory has moods: what it reached before or after, whichever was better. Its large buffer is
  // not the model's need.
  const int64_t of_load = PeakMemoryBytes();
  const double before = MeasureReadBandwidth(flags.common.threads);
  static_cast<void>(WriteFile("/proc/self/clear_refs", "5").ok());  // the peak starts anew
  TQ_ASSIGN_OR_RETURN(report.rows, Measurement(flags, kv, subject).Run());
  report.peak_memory_bytes = std::max(of_load, PeakMemoryBytes());
  report.bandwidth = std::max(before, MeasureReadBandwidth(flags.common.threads));
  if (!flags.record.empty()) TQ_RETURN_IF_ERROR(AppendBenchLine(report, flags.record));
  return flags.common.json ? WriteJson(BenchJson(report)) : WriteOut(BenchText(report));
}

}  // namespace

RunCommand RegisterBench(CLI::App& app) {
  const auto flags = std::make_shared<BenchFlags>();
  app.add_option("--model", flags->model,
                 "Checkpoint: a folder, a .gguf file, or ORG/NAME that `pull` has downloaded")
      ->transform(ModelPath());
  std::string names;
  for (const std::string& name : SyntheticNames()) names += (names.empty() ? "" : ", ") + name;
  app.add_option("--synthetic", flags->synthetic,
                 "Random weights of a released model's shapes instead: " + names +
                     "; or the path of a config.json");
  app.add_option("--bits", flags->shapes.bits,
                 "Bits of synthetic matrices: 2, 3, 4, or 16 for bf16")
      ->check(CLI::IsMember({2, 3, 4, 16}));
  app.add_option("--group-size", flags->shapes.group_size, "Group of synthetic matrices")
      ->check(CLI::IsMember({32, 64, 128}));
  app.add_option("--layers", flags->shapes.layers, "Only so many layers of a synthetic model");
  app.add_option("--prefill", flags->prefill, "Prompt lengths to time")
      ->delimiter(',')
      ->check(InRange<int64_t>(1, int64_t{1} << 20));
  app.add_option("--prefill-chunk", flags->chunk, "Tokens of a prompt per step")
      ->check(InRange<int64_t>(1, int64_t{1} << 20));
  app.add_option("--depth", flags->depths, "Tokens in the cache when decoding")
      ->delimiter(',')
      ->check(InRange<int64_t>(0, int64_t{1} << 20));
  app.add_option("--batch", flags->batches, "Sequences that decode together")
      ->delimiter(',')
      ->check(InRange(1, 256));
  app.add_option("--repeat", flags->repeat, "Decode steps to time; the best counts")
      ->check(InRange(1, 1000));
  AddKvFlags(app, flags->kv);
  app.add_flag("--ops", flags->ops, "Show which operations the time goes to");
  app.add_option("--record", flags->record, "Append the result to this file, as one JSON line");
  app.add_option("--restart", flags->restart,
                 "Instead: a conversation of so many tokens, cold and after a restart through the "
                 "disk prompt cache")
      ->check(InRange<int64_t>(1, int64_t{1} << 20));
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(app, {"turboquant bench --model Qwen3-8B-3bit --depth 0,4096,16384 --batch 1,4,16",
                    "turboquant bench --synthetic qwen3-4b --bits 3 --ops",
                    "turboquant bench --synthetic qwen3-4b --layers 8 --restart 16384",
                    "turboquant bench --synthetic qwen3.6-35b-a3b --layers 8 --json"});
  return [flags](Interrupts&) { return RunBench(*flags); };
}

}  // namespace tq
