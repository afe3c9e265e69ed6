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
#include "server/tool_choice.h"

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
  std::string format_field = {};           // which field says it
  ToolChoice choice = {};
  int64_t max_thoughts = -1;  // tokens; -1: no limit
  int64_t num_answers = 1;
  int num_logprobs = -1;  // alternatives of each token; -1: none are wanted
  bool stream = false;
};

// Fields that all three APIs may have: sampling, min_tokens, ignore_eos, chat_template_kwargs, n
// and best_of; refuses what is not served.
Status ReadCommon(const RequestNode& body, const Call& call, ChatAsk& ask);
// An API that has no place for several answers. Errors: more than one.
Status CheckOneAnswer(const RequestNode& body, const ChatAsk& ask);
// Errors: those of MakePromptIds, a form of the answer that cannot be enforced.
Result<AnswerPlan> MakeChatPlan(const Call& call, ChatAsk ask);
// The part of a plan that does not depend on the prompt.
AnswerPlan MakePlan(const Call& call, ChatAsk ask);

}  // namespace tq::server
