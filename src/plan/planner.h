// Planner: does a model fit a machine, with which settings, and if not, what would. All of it is
// arithmetic over memory_plan.h; nothing is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "plan/memory_plan.h"
#include "plan/sized_model.h"

namespace tq {

// What the program takes beside the engine: itself, threads, names of tensors, vocabulary, norms.
struct ProgramSize {
  int num_threads = 1;
  int64_t tokenizer_bytes = 0;  // of the files that hold the vocabulary
  int64_t num_matrices = 0;
  int64_t float_bytes = 0;
  int64_t vocab_size = 0;
  int64_t max_sequences = 1;
};
int64_t ProgramBytes(const ProgramSize& size);

// Memory of a machine. Swap never counts: weights that are swapped out are read for every token.
struct Machine {
  std::string name;          // "this machine"
  bool assumed = false;      // as given, not as found
  int64_t total_bytes = 0;   // of the machine, or what its container may use
  int64_t usable_bytes = 0;  // free now
  int64_t most_bytes = 0;    // when all other programs have ended
};
// ram_bytes: of a machine that is not this one.
Machine AssumedMachine(std::string name, int64_t ram_bytes);
// What is left of a machine's memory for one program: a tenth, and at least 1.5 GB, is the
// system's.
int64_t MostOf(int64_t total_bytes);

struct MemoryPlan {
  EngineOptions options;
  EngineMemory engine;
  int64_t program = 0;
  int64_t load_peak = 0;  // while weights are prepared, the program included
  int64_t peak() const;
  // For --memory-gb: what the engine takes, in whole megabytes; FitEngine changes nothing then.
  int64_t limit_bytes() const;
};

enum class Fit : uint8_t {
  kResident,      // as things are
  kAfterFreeing,  // when other programs give memory back
  kNone,
};
std::string_view FitName(Fit fit);
Fit FitOn(const Machine& machine, const MemoryPlan& plan);

class Planner {
 public:
  // The model's memory and what goes with it must outlive the planner.
  Planner(const ModelMemory& model, ProgramSize program, int64_t load_peak)
      : model_(model), program_(program), load_peak_(load_peak) {}

  // Of these options, with zeros filled in as the engine does. Errors: as EngineOptions::Validate,
  // MeasureWorkspace; kInvalidArgument for a context beyond the model's.
  Result<MemoryPlan> Plan(EngineOptions options) const;
  // The longest prefill chunk of 512, 256, ... with which it fits the machine; the given one when
  // none does.
  Result<MemoryPlan> Recommend(EngineOptions options, const Machine& machine) const;
  // The largest window, in whole pages, with which it fits; 0: none.
  Result<int64_t> LargestContext(EngineOptions options, const Machine& machine) const;
  // How many such requests fit at a time, at most `most`; 0: none.
  Result<int> MostSequences(EngineOptions options, const Machine& machine, int most) const;

 private:
  const ModelMemory& model_;
  ProgramSize program_;
  int64_t load_peak_;
};

}  // namespace tq
