#include "plan/planner.h"

#include <algorithm>

#include <fmt/format.h>

namespace tq {

int64_t ProgramBytes(const ProgramSize& size) {
  // Measured: code and libraries, vocabularies of 49 K to 152 K tokens. planner_test.cc compares
  // the sum with real runs.
  constexpr int64_t kProgram = int64_t{20} << 20;
  constexpr int64_t kThread = int64_t{128} << 10;
  constexpr int64_t kMatrix = 1024;  // names, shapes, the prepared matrix's own record
  constexpr int64_t kSampledToken = 16;
  constexpr int64_t kVocabulary = 10;  // tables, per byte of the file
  return kProgram + size.num_threads * kThread + size.num_matrices * kMatrix + size.float_bytes +
         size.max_sequences * size.vocab_size * kSampledToken + size.tokenizer_bytes * kVocabulary;
}

int64_t MostOf(int64_t total_bytes) {
  constexpr int64_t kSystem = 1'500'000'000;
  return std::max<int64_t>(0, std::min(total_bytes - total_bytes / 10, total_bytes - kSystem));
}

Machine AssumedMachine(std::string name, int64_t ram_bytes) {
  return {.name = std::move(name),
          .assumed = true,
          .total_bytes = ram_bytes,
          .usable_bytes = MostOf(ram_bytes),
          .most_bytes = MostOf(ram_bytes)};
}

int64_t MemoryPlan::peak() const { return std::max(engine.total() + program, load_peak); }

int64_t MemoryPlan::limit_bytes() const {
  constexpr int64_t kUnit = 1'000'000;
  return (engine.total() / kUnit + 1) * kUnit;
}

std::string_view FitName(Fit fit) {
  switch (fit) {
    case Fit::kResident:
      return "resident";
    case Fit::kAfterFreeing:
      return "resident after freeing memory";
    case Fit::kNone:
      break;
  }
  return "no-fit";
}

Fit FitOn(const Machine& machine, const MemoryPlan& plan) {
  if (plan.peak() <= machine.usable_bytes) return Fit::kResident;
  return plan.peak() <= machine.most_bytes ? Fit::kAfterFreeing : Fit::kNone;
}

Result<MemoryPlan> Planner::Plan(EngineOptions options) const {
  TQ_RETURN_IF_ERROR(options.Validate());
  if (options.max_context == 0) options.max_context = model_.max_position_embeddings;
  if (options.max_context > model_.max_position_embeddings) {
    return InvalidArgument(
        fmt::format("context: expected at most the model's {} positions, found {}",
                    model_.max_position_embeddings, options.max_context));
  }
  const int64_t each = KvCache::PagesFor(options.max_context) * kPageTokens;
  if (options.kv_tokens == 0) options.kv_tokens = each * options.max_sequences;
  if (options.state_checkpoints < 0) options.state_checkpoints = options.default_checkpoints();
  MemoryPlan out;
  TQ_ASSIGN_OR_RETURN(out.engine, ChargeEngine(model_, options));
  out.options = options;
  ProgramSize program = program_;
  program.max_sequences = options.max_sequences;
  out.program = ProgramBytes(program);
  // The vocabulary is read when the weights are there.
  program.tokenizer_bytes = 0;
  program.max_sequences = 0;
  out.load_peak = load_peak_ + ProgramBytes(program);
  return out;
}

Result<MemoryPlan> Planner::Recommend(EngineOptions options, const Machine& machine) const {
  TQ_ASSIGN_OR_RETURN(const MemoryPlan asked, Plan(options));
  MemoryPlan plan = asked;
  while (plan.peak() > machine.usable_bytes && options.prefill_chunk >= 2 * kPageTokens) {
    options.prefill_chunk /= 2;
    TQ_ASSIGN_OR_RETURN(plan, Plan(options));
  }
  // A shorter chunk that does not help either is slower for nothing.
  return FitOn(machine, plan) == FitOn(machine, asked) ? asked : plan;
}

Result<int64_t> Planner::LargestContext(EngineOptions options, const Machine& machine) const {
  options.max_context = model_.max_position_embeddings;
  options.kv_tokens = 0;
  TQ_ASSIGN_OR_RETURN(const MemoryPlan full, Plan(options));
  if (full.peak() <= machine.most_bytes) return options.max_context;
  if (full.load_peak > machine.most_bytes) return int64_t{0};
  const int64_t room =
      machine.most_bytes - (full.engine.total() - full.engine.pages + full.program);
  const int64_t pages = room / (model_.page_bytes() * options.max_sequences);
  return std::max<int64_t>(0, pages) * kPageTokens;
}

Result<int> Planner::MostSequences(EngineOptions options, const Machine& machine, int most) const {
  options.kv_tokens = 0;
  const int64_t checkpoints = options.state_checkpoints;
  int low = 0;
  int high = most;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    options.max_sequences = middle;
    options.state_checkpoints = checkpoints;
    TQ_ASSIGN_OR_RETURN(const MemoryPlan plan, Plan(options));
    if (plan.peak() <= machine.most_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace tq
