// POST /v1/messages and /v1/messages/count_tokens.
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "chat/parse_messages.h"
#include "server/anthropic/message_writer.h"
#include "server/chat_plan.h"
#include "server/chat_prompt_ids.h"
#include "server/fields.h"
#include "server/router.h"
#include "server/thought_limits.h"

namespace tq::server {
namespace {

struct MessageRequest {
  ChatAsk ask;
  MessageForm form;
};

// As in this API, a model thinks only when it is asked to.
Status ReadThinking(const RequestNode& body, ChatAsk& ask) {
  ChatPromptOptions& prompt = ask.prompt;
  const RequestNode thinking = body["thinking"];
  bool thinks = false;
  if (!thinking.IsNull()) {
    TQ_RETURN_IF_ERROR(thinking.CheckObject());
    const RequestNode type = thinking["type"];
    const std::string name = type.IsText() ? type.text() : "";
    if (name != "enabled" && name != "adaptive" && name != "disabled") {
      return type.Expected("\"enabled\", \"adaptive\" or \"disabled\"");
    }
    thinks = name != "disabled";
  }
  prompt.enable_thinking = thinks;
  if (!thinks) return Status::Ok();
  TQ_ASSIGN_OR_RETURN(prompt.reasoning_effort, body["output_config"]["effort"].OptionalText());
  TQ_ASSIGN_OR_RETURN(ask.max_thoughts, ReadThoughtLimit(body, prompt));
  return Status::Ok();
}

Status ReadLimits(const RequestNode& body, ChatAsk& ask) {
  const RequestNode max_tokens = body["max_tokens"];
  if (max_tokens.IsNull()) return max_tokens.Expected("a whole number >= 1");
  TQ_ASSIGN_OR_RETURN(const auto most,
                      OptionalInt(max_tokens, 1, std::numeric_limits<int64_t>::max()));
  ask.max_tokens = *most;
  return Status::Ok();
}

// What a prompt is made of.
Status ReadPrompt(const OrderedJson& json, const Call& call, MessageRequest& request) {
  const RequestNode body(json, "");
  request.form.model = call.model_name;
  TQ_ASSIGN_OR_RETURN(request.ask.input, ParseAnthropicChat(json));
  TQ_RETURN_IF_ERROR(ReadThinking(body, request.ask));
  TQ_RETURN_IF_ERROR(
      ReadTemplateVariables(body, call.service.options().template_variables, request.ask.prompt));
  TQ_ASSIGN_OR_RETURN(request.ask.choice, ReadToolChoice(body, request.ask.input));
  return Status::Ok();
}

Result<MessageRequest> ReadRequest(const OrderedJson& json, const Call& call) {
  const RequestNode body(json, "");
  MessageRequest request;
  TQ_RETURN_IF_ERROR(ReadPrompt(json, call, request));
  TQ_RETURN_IF_ERROR(ReadCommon(body, call, request.ask));
  TQ_RETURN_IF_ERROR(CheckOneAnswer(body, request.ask));
  TQ_RETURN_IF_ERROR(ReadLimits(body, request.ask));
  TQ_ASSIGN_OR_RETURN(request.ask.stops, ReadStops(body["stop_sequences"]));
  TQ_ASSIGN_OR_RETURN(const auto stream, OptionalBool(body["stream"]));
  request.form.stream = request.ask.stream = stream.value_or(false);
  return request;
}

}  // namespace

void Messages(const Call& asked) {
  const auto opened = OpenModelCall(asked);
  if (!opened) return;
  const Call& call = opened->call;
  auto request = ReadRequest(opened->body, call);
  if (!request.ok()) return call.Fail(request.status());
  auto plan = MakeChatPlan(call, std::move(request->ask));
  if (!plan.ok()) return call.Fail(plan.status());
  request->form.prompt_tokens = static_cast<int64_t>(plan->request.prompt.size());
  Generate(call, std::move(plan).value(), MakeMessageWriter(call, request->form));
}

void CountTokens(const Call& asked) {
  const auto opened = OpenModelCall(asked);
  if (!opened) return;
  const Call& call = opened->call;
  MessageRequest request;
  const Status status = ReadPrompt(opened->body, call, request);
  if (!status.ok()) return call.Fail(status);
  const auto prompt = MakePromptIds(call, request.ask.input, request.ask.prompt);
  if (!prompt.ok()) return call.Fail(prompt.status());
  call.Reply({{"input_tokens", prompt->ids.size()}});
}

}  // namespace tq::server
