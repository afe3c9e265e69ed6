// What `plan` prints: a table for people, one JSON object (schema 1) for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/plan_source.h"
#include "base/json.h"
#include "base/memory.h"
#include "plan/machines.h"
#include "plan/planner.h"
#include "plan/recipe_sizes.h"
#include "plan/streamed_experts.h"

namespace tq {

// Requests at a time that a plan counts up to.
inline constexpr int kMostSequences = 64;

struct PlanRecipe {
  RecipeSize size;
  Fit fit = Fit::kNone;
  int64_t peak_bytes = 0;
  double tokens_per_second = 0;             // at most: bandwidth over the bytes that a token reads
  double when_full = 0;                     // the same at the end of the window
  double load_seconds = 0;                  // its file from this disk; 0: not known
  std::optional<StreamedExperts> streamed;  // of a model with experts
};

struct PlanReport {
  const PlanSource* source = nullptr;
  const SizedModel* sized = nullptr;  // null: files are missing
  const ModelMemory* memory = nullptr;
  Machine machine;
  std::optional<int64_t> vram_bytes;
  MemoryPlan plan;  // with the settings that are recommended
  Fit fit = Fit::kNone;
  int64_t largest_context = 0;
  int most_sequences = 0;
  bool shorter_chunk = false;  // than was asked for
  KvSettings kv;
  std::optional<KvSettings> smaller_kv;  // with which it would fit, or better
  double bandwidth = 0;                  // of the machine, when recipes are ranked
  double disk_speed = 0;                 // of the model's disk; 0: not known
  SystemMemory system;                   // of this machine
  std::vector<int64_t> free_of_nodes;
  std::vector<PlanRecipe> recipes;
  std::vector<std::string> warnings;

  std::string VerdictName() const;  // "incomplete", or FitName
  // The flags with which the plan holds: "--max-context 16384 --prefill-chunk 512 --memory-gb 3.1".
  std::string FlagsText() const;
  // What `serve` needs beside them: "--max-batch 4 --kv-tokens 65536".
  std::string ServeFlagsText() const;
};

// "--kv-type int8/tq4", with what is not the default; "" for a cache that is not compressed.
std::string KvFlagsText(const KvSettings& kv);
std::string PlanText(const PlanReport& report);
OrderedJson PlanJson(const PlanReport& report);
// Why it does not fit, one line: what is short, and what would help.
std::string ShortfallText(const PlanReport& report);

}  // namespace tq
