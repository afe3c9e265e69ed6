// turboquant bench: how fast a model runs here: prefill, decoding at several depths and batch
// sizes, beside the memory bandwidth that the machine reaches.
#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/flags.h"
#include "apps/output.h"
#include "apps/run_stats.h"
#include "base/memory.h"
#include "cache/kv_cache.h"
#include "eval/bandwidth.h"
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
  std::vector<int64_t> prefill = {512};
  std::vector<int64_t> depths = {0, 4096};
  std::vector<int> batches = {1, 4};
  int64_t chunk = 512;
  int repeat = 5;
};

struct Row {
  std::string phase;
  int batch;
  int64_t depth;
  int64_t tokens;           // of all sequences, per measurement
  double seconds;           // the best of the repetitions
  double bytes_per_second;  // of weights; 0 for prefill
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

KvType KvTypeOf(const Backend& backend) {
  return backend.activations() == ActivationMode::kF32 ? KvType::kF32 : KvType::kF16;
}

// The largest cache of the run must fit beside the weights.
Status CheckFits(const BenchFlags& flags, const SyntheticModel& model, KvType kv_type) {
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
  for (const int64_t depth : flags.depths) {
    if (depth < context) pages = std::max(pages, KvCache::PagesFor(depth + 1) * slots);
  }
  return CheckSyntheticFits(model, MeasureSynthetic(model, kv_type, pages, slots), available);
}

Result<Subject> Load(const BenchFlags& flags, const Console& console) {
  Subject out;
  const auto begin = std::chrono::steady_clock::now();
  if (flags.synthetic.empty()) {
    TQ_ASSIGN_OR_RETURN(out.session, OpenSession(flags.model, flags.common, console));
  } else {
    TQ_ASSIGN_OR_RETURN(const SyntheticModel model, FindSynthetic(flags.synthetic, flags.shapes));
    TQ_ASSIGN_OR_RETURN(out.backend,
                        MakeBackend(flags.common.backend, BackendOptionsOf(flags.common)));
    TQ_RETURN_IF_ERROR(CheckFits(flags, model, KvTypeOf(*out.backend)));
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
  Measurement(const BenchFlags& flags, const Subject& subject) : flags_(flags), subject_(subject) {}

  Result<std::vector<Row>> Run() {
    const int64_t context = subject_.model().spec().max_position_embeddings;
    std::vector<Row> rows;
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
  KvType kv_type() const { return KvTypeOf(subject_.backend_used()); }

  Status Prefill(int64_t tokens, std::vector<Row>& rows) {
    TQ_ASSIGN_OR_RETURN(
        const auto timer,
        StepTimer::Create(subject_.model(), subject_.backend_used(), kv_type(), tokens, 1));
    double seconds = 0;
    for (int64_t done = 0; done < tokens;) {
      const int64_t n = std::min(flags_.chunk, tokens - done);
      seconds += timer->Step(1, n, done);
      done += n;
    }
    rows.push_back({"prefill", 1, 0, tokens, seconds, 0});
    return Status::Ok();
  }

  Status Decode(int batch, int64_t depth, std::vector<Row>& rows) {
    TQ_ASSIGN_OR_RETURN(
        const auto timer,
        StepTimer::Create(subject_.model(), subject_.backend_used(), kv_type(), depth + 1, batch));
    double best = timer->Step(batch, 1, depth);
    for (int i = 0; i < flags_.repeat; ++i) best = std::min(best, timer->Step(batch, 1, depth));
    const auto bytes = static_cast<double>(subject_.model().decode_bytes());
    rows.push_back({"decode", batch, depth, batch, best, batch == 1 ? bytes / best : 0});
    return Status::Ok();
  }

  const BenchFlags& flags_;
  const Subject& subject_;
};

Status Print(const BenchFlags& flags, const Subject& subject, const std::vector<Row>& rows,
             double bandwidth) {
  const Model& model = subject.model();
  const int64_t peak = PeakMemoryBytes();
  if (flags.common.json) {
    OrderedJson json = {{"model", flags.synthetic.empty() ? flags.model : flags.synthetic},
                        {"model_type", model.spec().model_type},
                        {"layers", model.spec().blocks.size()},
                        {"isa", subject.backend_used().isa()},
                        {"threads", subject.backend_used().num_threads()},
                        {"prepared_bytes", model.prepared_bytes()},
                        {"decode_bytes", model.decode_bytes()},
                        {"load_seconds", subject.load_seconds},
                        {"peak_memory_bytes", peak},
                        {"read_bandwidth", bandwidth}};
    json["rows"] = OrderedJson::array();
    for (const Row& row : rows) {
      json["rows"].push_back({{"phase", row.phase},
                              {"batch", row.batch},
                              {"depth", row.depth},
                              {"tokens", row.tokens},
                              {"seconds", row.seconds},
                              {"tokens_per_second", static_cast<double>(row.tokens) / row.seconds},
                              {"weight_bytes_per_second", row.bytes_per_second}});
    }
    return WriteJson(json);
  }
  std::string text = fmt::format(
      "{}: {}, {} layers, {} of weights ({} read for a token), loaded in {:.1f} s, peak {}\n"
      "{} with {} threads; memory reads at {}/s\n\n",
      flags.synthetic.empty() ? flags.model : flags.synthetic, model.spec().model_type,
      model.spec().blocks.size(), HumanBytes(static_cast<double>(model.prepared_bytes())),
      HumanBytes(static_cast<double>(model.decode_bytes())), subject.load_seconds,
      HumanBytes(static_cast<double>(peak)), subject.backend_used().isa(),
      subject.backend_used().num_threads(), HumanBytes(bandwidth));
  std::vector<std::vector<std::string>> table = {
      {"phase", "batch", "depth", "tokens", "ms", "tokens/s", "weights", "of bandwidth"}};
  for (const Row& row : rows) {
    const bool reads = row.bytes_per_second > 0 && bandwidth > 0;
    table.push_back({row.phase, fmt::to_string(row.batch), fmt::to_string(row.depth),
                     fmt::to_string(row.tokens), fmt::format("{:.1f}", row.seconds * 1e3),
                     fmt::format("{:.1f}", static_cast<double>(row.tokens) / row.seconds),
                     reads ? HumanBytes(row.bytes_per_second) + "/s" : "",
                     reads ? fmt::format("{:.0f} %", 100 * row.bytes_per_second / bandwidth) : ""});
  }
  return WriteOut(text + FormatTable(table, {false, true, true, true, true, true, true, true}));
}

Status RunBench(const BenchFlags& flags) {
  const Console console = MakeConsole(flags.common.quiet);
  if (flags.model.empty() == flags.synthetic.empty()) {
    return InvalidArgument("bench: expected --model or --synthetic, found " +
                           std::string(flags.model.empty() ? "neither" : "both"));
  }
  TQ_ASSIGN_OR_RETURN(const Subject subject, Load(flags, console));
  TQ_ASSIGN_OR_RETURN(const std::vector<Row> rows, Measurement(flags, subject).Run());
  return Print(flags, subject, rows, MeasureReadBandwidth(flags.common.threads));
}

}  // namespace

RunCommand RegisterBench(CLI::App& app) {
  const auto flags = std::make_shared<BenchFlags>();
  app.add_option("--model", flags->model, "Checkpoint folder or .gguf file");
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
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(app, {"turboquant bench --model Qwen3-8B-3bit --depth 0,4096,16384 --batch 1,4,16",
                    "turboquant bench --synthetic qwen3-4b --bits 3",
                    "turboquant bench --synthetic qwen3.6-35b-a3b --layers 8 --json"});
  return [flags](Interrupts&) { return RunBench(*flags); };
}

}  // namespace tq
