// evaluate for several checkpoints: a task suite, and conversions of one reference at a list of
// widths, side by side.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "apps/interrupts.h"

namespace tq {

struct EvaluateListFlags {
  std::string tasks;
  int64_t task_every = 1;
  int64_t task_tokens = 256;
  int64_t task_batch = 16;
  std::vector<int> bits;
  std::vector<std::string> recipes;
  int group_size = 64;
  std::string work_dir;
  std::string svg;

  bool wanted() const { return !tasks.empty() || !bits.empty() || !recipes.empty(); }
};

// What the flags of all kinds of evaluation say.
struct EvaluateListInput {
  std::string model;      // may be empty
  std::string reference;  // may be empty
  std::string text;       // may be empty
  int64_t seq_len = 512;
  int64_t num_samples = 512;
  std::vector<KvSettings> kv = {};  // caches to measure beside the exact one
};

// Requires: the options --text and --reference of the command are there.
void AddEvaluateListFlags(CLI::App& app, EvaluateListFlags& flags);

// Measures every checkpoint and prints the table, or with --json one object. Errors: those of
// loading, converting and measuring; what is half done leaves nothing behind.
Status RunEvaluateList(const EvaluateListFlags& flags, const EvaluateListInput& input,
                       const CommonFlags& common, Interrupts& interrupts);

}  // namespace tq
