// Flags of `generate` and `chat`: sampling, limits, prompt building.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "api/request_text.h"
#include "api/text_assets.h"
#include "engine/engine.h"
#include "engine/request.h"

namespace tq {

struct GenerationFlags {
  int64_t max_tokens = 512;
  int64_t min_tokens = 0;
  // Unset: what the checkpoint says.
  std::optional<float> temp;
  std::optional<float> top_p;
  std::optional<int> top_k;
  std::optional<float> min_p;
  std::optional<float> rep_penalty;
  std::optional<float> typical_p;
  std::optional<uint64_t> seed;
  std::string logit_bias;
  std::string samplers;
  SamplingParams sampling;  // what has no default in the checkpoint
  std::vector<std::string> dry_breakers = DefaultDryBreakers();
  std::vector<std::string> bad_words;
  std::vector<std::string> stop;
  bool ignore_end = false;
  int64_t loop_limit = 0;
  int logprobs = -1;
  int64_t num_answers = 1;
  bool no_think = false;
  std::string system;
  int64_t prefill_chunk = 512;
  int64_t max_context = 0;
};

// Reads the default of --max-tokens from `flags`.
void AddGenerationFlags(CLI::App& app, GenerationFlags& flags);
// --n, for a command that can show several answers.
void AddAnswersFlag(CLI::App& app, GenerationFlags& flags);
// What needs a look at several flags: --logprobs with --json, texts that are UTF-8.
Status CheckGenerationFlags(const GenerationFlags& flags, bool json);

// The checkpoint's defaults with the flags over them. Without --seed a sampled answer gets a random
// one.
SamplingParams MakeSampling(const GenerationFlags& flags, const TextAssets& text);
// A stop text that is one special token of the vocabulary also stops by its id. Errors:
// kNotFound (bad words without a tokenizer).
Result<GenerateRequest> MakeRequest(const GenerationFlags& flags, const TextAssets& text,
                                    std::vector<int32_t> prompt);
EngineOptions MakeEngineOptions(const GenerationFlags& flags);

}  // namespace tq
