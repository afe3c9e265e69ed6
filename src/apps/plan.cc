// turboquant plan: will it fit? Told from headers alone, by the engine's own formula.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "apps/command.h"
#include "apps/disk_cache_flags.h"
#include "apps/flags.h"
#include "apps/kv_flags.h"
#include "apps/output.h"
#include "apps/plan_report.h"
#include "apps/plan_source.h"
#include "eval/bandwidth.h"
#include "eval/disk_speed.h"
#include "model/checkpoint_parts.h"

namespace tq {
namespace {

struct PlanFlags {
  CommonFlags common;
  KvFlags kv;
  DiskCacheFlags disk_cache;
  std::string model;
  std::vector<std::string> include;
  int64_t context = 16384;
  int parallel = 1;
  int64_t prefill_chunk = 512;
  double ram_gb = 0;
  double vram_gb = 0;
  std::string machine_name;
  bool rank = false;
};

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

Result<Machine> MachineFor(const PlanFlags& flags, double& bandwidth) {
  bandwidth = 0;
  if (!flags.machine_name.empty()) {
    TQ_ASSIGN_OR_RETURN(const NamedMachine named, FindMachine(flags.machine_name));
    bandwidth = named.read_bandwidth;
    return MachineOf(named);
  }
  if (flags.ram_gb > 0) {
    return AssumedMachine(fmt::format("a machine with {:g} GiB", flags.ram_gb),
                          static_cast<int64_t>(flags.ram_gb * kGib));
  }
  return ThisMachine();
}

void AddWarnings(const PlanFlags& flags, PlanReport& report) {
  const int64_t peak = report.plan.peak();
  if (report.fit == Fit::kAfterFreeing && report.machine.assumed) {
    report.warnings.push_back(
        fmt::format("{} more than a program may take there at first: raise the system's limit",
                    HumanBytes(static_cast<double>(peak - report.machine.usable_bytes))));
  } else if (report.fit == Fit::kAfterFreeing) {
    report.warnings.push_back(
        fmt::format("{} more must become free first: end other programs (swap is not counted: "
                    "weights that are swapped out are read again for every token)",
                    HumanBytes(static_cast<double>(peak - report.machine.usable_bytes))));
  }
  if (report.shorter_chunk) {
    report.warnings.push_back(
        fmt::format("prefill chunks of {} and not {}: a longer one does not fit beside the rest",
                    report.plan.options.prefill_chunk, flags.prefill_chunk));
  }
  if (report.plan.options.max_context < flags.context) {
    report.warnings.push_back(
        fmt::format("the model's own window is {} tokens, less than --context",
                    report.plan.options.max_context));
  }
  const std::vector<int64_t>& nodes = report.free_of_nodes;
  if (nodes.size() > 1 && peak > *std::max_element(nodes.begin(), nodes.end())) {
    report.warnings.push_back(
        fmt::format("no one of the {} memory nodes has so much free: start it with `numactl "
                    "--interleave=all`",
                    nodes.size()));
  }
}

// What a compressed cache would change: the first of two settings with which it fits, or fits
// better; a hint where the cache is large.
Status TrySmallerKv(const ProgramSize& program, const EngineOptions& options, PlanReport& report) {
  constexpr int64_t kLargeCache = 1'000'000'000;
  if (report.kv.packed()) return Status::Ok();
  std::string hint;
  for (const KvFormat k : {KvFormat::kInt8, KvFormat::kTq4}) {
    KvSettings kv = report.kv;
    kv.k = k;
    kv.v = KvFormat::kTq4;
    const ModelMemory memory = MemoryOf(*report.sized->model, *report.sized->backend, kv);
    const Planner planner(memory, program, report.sized->load_peak);
    TQ_ASSIGN_OR_RETURN(const MemoryPlan plan, planner.Recommend(options, report.machine));
    const Fit fit = FitOn(report.machine, plan);
    const std::string text = fmt::format("{} makes the KV cache {} of {}", KvFlagsText(kv),
                                         HumanBytes(static_cast<double>(plan.engine.pages)),
                                         HumanBytes(static_cast<double>(report.plan.engine.pages)));
    if (fit < report.fit) {
      report.smaller_kv = kv;
      hint = fmt::format("{}: {} then", text, FitName(fit));
      break;
    }
    if (hint.empty() && report.plan.engine.pages > kLargeCache) hint = text;
  }
  if (!hint.empty()) report.warnings.push_back(hint + " (what it costs: docs/kv-cache.md)");
  return Status::Ok();
}

// A budget that the disk does not have is a cache that stops one day.
void AddDiskWarning(const DiskCacheOptions& cache, PlanReport& report) {
  if (cache.folder.empty()) return;
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(cache.folder, error);
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  const auto space = std::filesystem::space(folder, error);
  if (error || static_cast<int64_t>(space.available) >= cache.budget_bytes) return;
  report.warnings.push_back(fmt::format(
      "disk cache: {} are free at {}, its budget is {}: lower --disk-cache-budget-gb, or take "
      "another disk",
      HumanBytes(static_cast<double>(space.available)), folder.string(),
      HumanBytes(static_cast<double>(cache.budget_bytes))));
}

// Peaks of conversions: as the plan's, with other weights.
Status RankRecipes(const PlanFlags& flags, double bandwidth, PlanReport& report) {
  const ModelSpec& spec = report.sized->model->spec();
  report.bandwidth = bandwidth > 0 ? bandwidth : MeasureReadBandwidth(flags.common.threads);
  // Another machine's disk is not known.
  if (!report.machine.assumed && !report.source->largest_file.empty()) {
    report.disk_speed = MeasureDiskSpeed(report.source->largest_file);
  }
  const int64_t window = KvCache::PagesFor(report.plan.options.max_context) *
                         KvCache::BytesPerPage(report.memory->needs);
  const int64_t others = report.plan.engine.total() - report.plan.engine.weights +
                         report.plan.program + KvCache::BytesPerPage(report.memory->needs);
  const auto add = [&](RecipeSize size) {
    PlanRecipe recipe;
    recipe.peak_bytes = size.prepared_bytes + others;
    recipe.fit = recipe.peak_bytes <= report.machine.usable_bytes ? Fit::kResident
                 : recipe.peak_bytes <= report.machine.most_bytes ? Fit::kAfterFreeing
                                                                  : Fit::kNone;
    recipe.tokens_per_second =
        report.bandwidth / static_cast<double>(std::max<int64_t>(1, size.decode_bytes));
    recipe.when_full =
        report.bandwidth / static_cast<double>(std::max<int64_t>(1, size.decode_bytes + window));
    if (report.disk_speed > 0) {
      recipe.load_seconds = static_cast<double>(size.file_bytes) / report.disk_speed;
    }
    if (size.expert_bytes > 0) {
      recipe.streamed = EstimateStreaming(size, others,
                                          {.memory_bytes = report.machine.most_bytes,
                                           .bandwidth = report.bandwidth,
                                           .disk_speed = report.disk_speed});
    }
    recipe.size = std::move(size);
    report.recipes.push_back(std::move(recipe));
  };
  TQ_ASSIGN_OR_RETURN(const CheckpointParts parts, ReadCheckpointParts(*report.source->source));
  int64_t weights = 0;
  for (const Model::NamedWeight& named : report.sized->model->Weights()) {
    weights += named.weight->rows() * named.weight->cols();
  }
  add({.name = "",
       .text = "as it is stored now",
       .quality = "the original",
       .bits_per_weight = 8.0 * static_cast<double>(parts.prepared_bytes) /
                          static_cast<double>(std::max<int64_t>(1, weights)),
       .file_bytes = report.source->stored_bytes,
       .prepared_bytes = report.plan.engine.weights,
       .decode_bytes = report.sized->model->decode_bytes(),
       .expert_bytes = report.sized->model->expert_bytes(),
       .expert_decode_bytes =
           static_cast<int64_t>(report.sized->model->expert_share() *
                                static_cast<double>(report.sized->model->expert_bytes()))});
  const auto sizes = SizeRecipes(*report.source->source, spec, *report.sized->backend);
  if (!sizes.ok()) {
    report.warnings.push_back("no conversions to rank: " +
                              report.source->Named(sizes.status()).message());
    return Status::Ok();
  }
  for (const RecipeSize& size : *sizes) add(size);
  return Status::Ok();
}

Status Print(const PlanFlags& flags, const PlanReport& report) {
  TQ_RETURN_IF_ERROR(flags.common.json ? WriteJson(PlanJson(report)) : WriteOut(PlanText(report)));
  if (report.sized == nullptr) return NotFound(ShortfallText(report));
  return report.fit == Fit::kNone ? OutOfMemory(ShortfallText(report)) : Status::Ok();
}

// Fills in what the machine allows.
Status Judge(const PlanFlags& flags, const ProgramSize& program, PlanReport& report) {
  const Planner planner(*report.memory, program, report.sized->load_peak);
  EngineOptions options;
  options.max_context = std::min(flags.context, report.memory->max_position_embeddings);
  options.max_sequences = flags.parallel;
  options.prefill_chunk = flags.prefill_chunk;
  options.embeddings = true;  // `serve` gives them; a few megabytes
  TQ_ASSIGN_OR_RETURN(options.disk_cache, MakeDiskCacheOptions(flags.disk_cache, flags.model));
  TQ_ASSIGN_OR_RETURN(report.plan, planner.Recommend(options, report.machine));
  report.fit = FitOn(report.machine, report.plan);
  report.shorter_chunk = report.plan.options.prefill_chunk < flags.prefill_chunk;
  options.prefill_chunk = report.plan.options.prefill_chunk;
  TQ_ASSIGN_OR_RETURN(report.largest_context, planner.LargestContext(options, report.machine));
  TQ_ASSIGN_OR_RETURN(report.most_sequences,
                      planner.MostSequences(options, report.machine, kMostSequences));
  AddWarnings(flags, report);
  TQ_RETURN_IF_ERROR(TrySmallerKv(program, options, report));
  AddDiskWarning(options.disk_cache, report);
  return Status::Ok();
}

Status RunPlan(const PlanFlags& flags, Interrupts& interrupts) {
  const Console console = MakeConsole(flags.common.quiet);
  std::atomic<bool> cancel{false};
  const Interrupts::Scope scope(interrupts, [&cancel] { cancel = true; });
  PlanReport report;
  double bandwidth = 0;
  TQ_ASSIGN_OR_RETURN(report.machine, MachineFor(flags, bandwidth));
  if (!report.machine.assumed) {
    report.system = ReadSystemMemory();
    report.free_of_nodes = FreeBytesOfNodes();
  }
  if (flags.vram_gb > 0) report.vram_bytes = static_cast<int64_t>(flags.vram_gb * kGib);
  TQ_ASSIGN_OR_RETURN(const PlanSource source,
                      OpenPlanSource(flags.model, flags.include, console, cancel));
  report.source = &source;
  if (source.source == nullptr) return Print(flags, report);

  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                      MakeBackend(flags.common.backend, BackendOptionsOf(flags.common)));
  const Result<SizedModel> sized = SizeModel(*source.source, *backend);
  if (!sized.ok()) return source.Named(sized.status());
  report.sized = &*sized;
  TQ_ASSIGN_OR_RETURN(const std::optional<KvSettings> wanted, KvSettingsOf(flags.kv));
  report.kv = KvSettingsFor(backend->activations(), wanted);
  const ModelMemory memory = MemoryOf(*sized->model, *sized->backend, report.kv);
  report.memory = &memory;
  const ProgramSize program = {.num_threads = backend->num_threads(),
                               .tokenizer_bytes = source.tokenizer_bytes,
                               .num_matrices = sized->num_matrices,
                               .float_bytes = sized->float_bytes,
                               .vocab_size = memory.vocab_size};
  if (flags.common.memory_gb > 0) {
    const auto limit = static_cast<int64_t>(flags.common.memory_gb * 1e9);
    report.machine.name += fmt::format(" within {:g} GB", flags.common.memory_gb);
    report.machine.usable_bytes = std::min(report.machine.usable_bytes, limit);
    report.machine.most_bytes = std::min(report.machine.most_bytes, limit);
  }
  if (!source.template_error.empty()) {
    report.warnings.push_back("chat template: " + source.template_error +
                              ": `chat` and chat requests of `serve` will be refused");
  }
  TQ_RETURN_IF_ERROR(Judge(flags, program, report));
  if (flags.rank) TQ_RETURN_IF_ERROR(RankRecipes(flags, bandwidth, report));
  return Print(flags, report);
}

}  // namespace

RunCommand RegisterPlan(CLI::App& app) {
  const auto flags = std::make_shared<PlanFlags>();
  app.add_option(
         "--model", flags->model,
         "Checkpoint: a folder in Hugging Face layout, a .gguf file, or ORG/NAME[@REVISION] "
         "of a repository, of which the headers are read")
      ->required();
  app.add_option("--include", flags->include, "Which .gguf of a repository, as '*Q4_K_M.gguf'")
      ->delimiter(',');
  app.add_option("--context", flags->context, "Tokens of a conversation")
      ->check(InRange(int64_t{2}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--parallel", flags->parallel, "Requests at a time, each with such a window")
      ->check(InRange(1, 4096))
      ->capture_default_str();
  app.add_option("--prefill-chunk", flags->prefill_chunk,
                 "Prompt tokens per step; the longest that fits is recommended")
      ->check(InRange(int64_t{1}, int64_t{1} << 16))
      ->capture_default_str();
  app.add_option("--ram-gb", flags->ram_gb,
                 "A machine with so much memory (GiB, as it is sold), not this one")
      ->check(InRange(0.1, 1e6));
  app.add_option("--vram-gb", flags->vram_gb,
                 "Say also whether it would fit into a GPU with so many GiB")
      ->check(InRange(0.1, 1e6));
  app.add_option("--machine-name", flags->machine_name, "A known machine: mac-mini-16gb")
      ->excludes("--ram-gb");
  app.add_flag("--machine", flags->rank,
               "Rank the conversions of this model that could run on the machine");
  AddKvFlags(app, flags->kv);
  AddDiskCacheFlags(app, flags->disk_cache);
  AddCommonFlags(app, flags->common, Compute::kModel);
  SetExamples(app,
              {"turboquant plan --model Qwen3-8B-3bit",
               "turboquant plan --model Qwen/Qwen3-30B-A3B --machine      # nothing is downloaded",
               "turboquant plan --model model.gguf --context 65536 --parallel 4 --json",
               "turboquant plan --model Qwen/Qwen3-8B --ram-gb 16"});
  return [flags](Interrupts& interrupts) { return RunPlan(*flags, interrupts); };
}

}  // namespace tq
