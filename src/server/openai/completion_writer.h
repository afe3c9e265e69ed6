// Answers of /v1/completions: one object, or a stream of chunks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/generation.h"

namespace tq::server {

struct CompletionForm {
  std::string model;
  std::vector<std::string> echo;  // texts of the prompts, in front of their answers; none: no echo
  size_t num_prompts = 1;
  size_t answers_per_prompt = 1;
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
};

std::unique_ptr<AnswerWriter> MakeCompletionWriter(const Call& call, CompletionForm form);

}  // namespace tq::server
