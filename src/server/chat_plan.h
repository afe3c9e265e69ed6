// What an API asks for in one conversation, and the plan to answer it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/messages.h"
#include "chat/prompt.h"
#include "chat/request_json.h"
#include "grammar/grammar_compiler.h"
#include "sampling/sampler.h"
#include "server/generation.h"

namespace tq::server {

struct ChatAsk {
  ChatInput input;
  ChatPromptOptions prompt = {};
  SamplingParams sampling = {};
  int64_t max_tokens = -1;  // -1: not said
  int64_t min_tokens = 0;
  std::vector<std::string> stops = {};
  bool ignore_end = false;                 // go on behind the end of the turn
  std::optional<GrammarSpec> format = {};  // of the answer
  bool stream = false;
};

// Fields that all three APIs may have: sampling, min_tokens, ignore_eos, chat_template_kwargs;
// refuses what is not served.
Status ReadCommon(const RequestNode& body, const Service& service, ChatAsk& ask);
// "auto" keeps the tools, "none" hides them. Errors: everything else, until calls can be forced.
Status ApplyToolChoice(const RequestNode& choice, ChatInput& input);

// Errors: those of MakePromptIds.
Result<AnswerPlan> MakeChatPlan(const Call& call, ChatAsk ask);
// The part of a plan that does not depend on the prompt.
AnswerPlan MakePlan(const Service& service, ChatAsk ask);

}  // namespace tq::server
