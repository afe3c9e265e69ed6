// Replay: a model without weights that says the texts of a file, for tests of clients and of the
// server. Everything above it (templates, tokenizer, scheduler, prefix cache, parsers, streams)
// runs for real. docs/serve.md has the form of the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/text_assets.h"
#include "base/status.h"
#include "engine/step_model.h"

namespace tq::server {

struct ReplayAnswer {
  std::string when = {};              // the prompt has this text; "": any prompt
  std::string unless = {};            // and not this one; "": whatever it has
  std::string say = {};               // special tokens as the tokenizer writes them
  int64_t repeat = 1;                 // so many times
  bool fail = false;                  // then the step fails, instead of an end of the turn
  std::chrono::milliseconds wait{0};  // before the first token
  std::chrono::milliseconds pace{0};  // before each other one
};

// Errors: kCorrupt and kInvalidArgument naming `where` and the answer.
Result<std::vector<ReplayAnswer>> ParseReplay(std::string_view json, std::string_view where);

// Says, of the answers that apply, the one whose `when` stands last in the prompt (the first of
// several such). Waits hold up everybody. text outlives the model.
// Errors: kInvalidArgument (no tokenizer, no end id, a text that the tokenizer does not give back).
Result<std::unique_ptr<StepModel>> MakeReplayModel(std::vector<ReplayAnswer> answers,
                                                   const TextAssets& text, int64_t max_context);

}  // namespace tq::server
