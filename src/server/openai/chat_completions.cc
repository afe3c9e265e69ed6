// POST /v1/chat/completions.
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "chat/parse_messages.h"
#include "server/chat_plan.h"
#include "server/fields.h"
#include "server/logprobs.h"
#include "server/openai/chat_writer.h"
#include "server/router.h"
#include "server/thought_limits.h"

namespace tq::server {
namespace {

struct ChatRequest {
  ChatAsk ask;
  ChatForm form;
};

Status ReadLimits(const RequestNode& body, ChatAsk& ask) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  TQ_ASSIGN_OR_RETURN(const auto now, OptionalInt(body["max_completion_tokens"], 1, kMost));
  TQ_ASSIGN_OR_RETURN(const auto before, OptionalInt(body["max_tokens"], 1, kMost));
  ask.max_tokens = now ? *now : before.value_or(-1);
  return Status::Ok();
}

// Two names of one thing.
Result<std::string> ReadEffort(const RequestNode& body) {
  const RequestNode effort = body["reasoning_effort"];
  return (effort.IsNull() ? body["reasoning"]["effort"] : effort).OptionalText();
}

Result<ChatRequest> ReadRequest(const OrderedJson& json, const Call& call) {
  const RequestNode body(json, "");
  ChatRequest request;
  request.form.model = call.model_name;
  TQ_ASSIGN_OR_RETURN(request.ask.input, ParseOpenAiChat(json));
  TQ_RETURN_IF_ERROR(ReadCommon(body, call, request.ask));
  TQ_RETURN_IF_ERROR(ReadLimits(body, request.ask));
  TQ_ASSIGN_OR_RETURN(request.ask.num_logprobs, ReadChatLogprobs(body));
  request.form.logprobs = request.ask.num_logprobs >= 0;
  request.form.num_answers = static_cast<size_t>(request.ask.num_answers);
  TQ_ASSIGN_OR_RETURN(request.ask.choice, ReadToolChoice(body, request.ask.input));
  TQ_ASSIGN_OR_RETURN(request.ask.stops, ReadStops(body["stop"]));
  TQ_ASSIGN_OR_RETURN(request.ask.prompt.reasoning_effort, ReadEffort(body));
  TQ_ASSIGN_OR_RETURN(request.ask.max_thoughts, ReadThoughtLimit(body, request.ask.prompt));
  TQ_ASSIGN_OR_RETURN(const auto stream, OptionalBool(body["stream"]));
  request.form.stream = request.ask.stream = stream.value_or(false);
  const RequestNode options = body["stream_options"];
  if (!options.IsNull()) TQ_RETURN_IF_ERROR(options.CheckObject());
  TQ_ASSIGN_OR_RETURN(const auto usage, OptionalBool(options["include_usage"]));
  request.form.include_usage = usage.value_or(call.service.options().stream_usage);
  return request;
}

}  // namespace

void ChatCompletions(const Call& asked) {
  const auto opened = OpenModelCall(asked);
  if (!opened) return;
  const Call& call = opened->call;
  auto request = ReadRequest(opened->body, call);
  if (!request.ok()) return call.Fail(request.status());
  auto plan = MakeChatPlan(call, std::move(request->ask));
  if (!plan.ok()) return call.Fail(plan.status());
  Generate(call, std::move(plan).value(), MakeChatWriter(call, request->form));
}

}  // namespace tq::server
