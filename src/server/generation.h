// Generation: the answers to one request on their way from the engine to a client: ids -> text ->
// stop strings -> events -> the writer of an API. It never blocks: the model pool and the engine
// wake it through the exchange, and a slow client pauses its own sequences alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/messages.h"
#include "chat/output/output_parser.h"
#include "chat/prompt.h"
#include "engine/request.h"
#include "server/call.h"
#include "server/shown_tokens.h"

namespace tq::server {

struct AnswerEnd {
  enum class Reason : uint8_t { kEndOfTurn, kStopString, kLength, kToolCalls };
  Reason reason = Reason::kEndOfTurn;
  std::string stop_string = {};  // kStopString: which
  GenerateStats stats;
  int64_t reasoning_tokens = 0;
};

// Writes the answers to one request in the form of one API, as a stream or at once. Thread: the
// exchange's.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // The engine has taken the request, or the model takes long to load.
  virtual void Begin() = 0;
  // answer: which one, from 0 on; those to one prompt come one after another.
  virtual void Add(size_t answer, const AnswerEvent& event) = 0;
  // Nothing was written for a while.
  virtual void KeepAlive() = 0;
  // One answer is complete.
  virtual void EndAnswer(size_t answer, const AnswerEnd& end) = 0;
  // All are.
  virtual void End(std::span<const AnswerEnd> ends) = 0;
  // They will not be complete.
  virtual void Fail(const ApiError& error) = 0;
};

struct AnswerPlan {
  GenerateRequest request;
  std::vector<std::vector<int32_t>> more_prompts = {};  // to be answered likewise
  int64_t num_answers = 1;                              // to each prompt
  bool one_call = false;                                // an answer ends before a second call
  std::vector<std::string> stops;
  // Of a conversation: what the answer is remembered by. Empty history: it is not.
  std::vector<ChatMessage> history = {};
  RenderedPrompt rendered = {};
  std::vector<ToolSpec> tools = {};
  std::optional<OutputParserOptions> parser = {};  // none: the answer is all text
};

// "stop", "length" or "tool_calls": OpenAI's reasons to end, and the outcomes of logs and metrics.
std::string_view OutcomeName(const AnswerEnd& end);

// Checks the length of the prompts, waits until the model is loaded, submits, and answers. Errors
// go to the client in the API's words. give_cancel: called before anything is written with a
// function that ends the answers early (any thread). Requires: call.model.
void Generate(const Call& call, AnswerPlan plan, std::unique_ptr<AnswerWriter> writer,
              const std::function<void(std::function<void()> cancel)>& give_cancel = {});

}  // namespace tq::server
