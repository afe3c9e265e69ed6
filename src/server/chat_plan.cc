#include "server/chat_plan.h"

#include <limits>
#include <utility>

#include "server/answer_format.h"
#include "server/chat_prompt_ids.h"
#include "server/fields.h"

namespace tq::server {

Status ReadCommon(const RequestNode& body, const Service& service, ChatAsk& ask) {
  TQ_RETURN_IF_ERROR(RefuseUnserved(body));
  TQ_ASSIGN_OR_RETURN(ask.sampling, ReadSampling(body, service.text()));
  TQ_ASSIGN_OR_RETURN(const auto min_tokens, OptionalInt(body["min_tokens"], 0, 1 << 30));
  ask.min_tokens = min_tokens.value_or(0);
  TQ_ASSIGN_OR_RETURN(const auto ignore_end, OptionalBool(body["ignore_eos"]));
  ask.ignore_end = ignore_end.value_or(false);
  TQ_ASSIGN_OR_RETURN(ask.format, ReadAnswerFormat(body));
  return ReadTemplateVariables(body, ask.prompt);
}

Status ApplyToolChoice(const RequestNode& choice, ChatInput& input) {
  if (choice.IsNull()) return Status::Ok();
  const RequestNode type = choice.IsObject() ? choice["type"] : choice;
  if (!type.IsText()) return choice.Expected("\"auto\" or \"none\"");
  if (type.text() == "auto") return Status::Ok();
  if (type.text() != "none") {
    return type.Expected("\"auto\" or \"none\" (this server does not force calls yet)");
  }
  input.tools.clear();
  return Status::Ok();
}

AnswerPlan MakePlan(const Service& service, ChatAsk ask) {
  const TextAssets& text = service.text();
  AnswerPlan plan;
  plan.request.sampling = std::move(ask.sampling);
  plan.request.max_tokens = ask.max_tokens;
  plan.request.min_tokens = ask.min_tokens;
  if (!ask.ignore_end) plan.request.end_ids = text.end_ids;
  for (const std::string& stop : ask.stops) {
    // Special tokens are no text, so they are looked for by id.
    const int32_t id = text.tokenizer->TokenId(stop);
    if (id >= 0 && text.tokenizer->IsSpecial(id)) plan.request.stop_ids.push_back(id);
  }
  plan.stops = std::move(ask.stops);
  return plan;
}

Result<AnswerPlan> MakeChatPlan(const Call& call, ChatAsk ask) {
  for (const std::string& note : ask.input.notes) {
    call.service.log().Write(LogLevel::kDebug, "note", {{"id", call.request_id}, {"what", note}});
  }
  std::vector<ChatMessage> history = ask.input.messages;
  TQ_ASSIGN_OR_RETURN(PromptIds prompt, MakePromptIds(call.service, ask.input, ask.prompt));
  for (const std::string& note : prompt.rendered.notes) {
    call.service.log().Write(LogLevel::kDebug, "note", {{"id", call.request_id}, {"what", note}});
  }
  std::vector<ToolSpec> tools = std::move(ask.input.tools);
  const bool stream = ask.stream;
  const std::optional<GrammarSpec> format = std::move(ask.format);
  if (format && !tools.empty()) {
    return InvalidArgument(
        "response_format: expected no tools beside it (an answer that may also be a call cannot be "
        "held to it), found some: leave one of them out, or send \"tool_choice\": \"none\"");
  }
  AnswerPlan plan = MakePlan(call.service, std::move(ask));
  const OutputSyntax& syntax = call.service.text().chat->syntax(!tools.empty());
  plan.parser = OutputParserOptions{
      .syntax = syntax,
      .starts_in_reasoning = PromptOpensReasoning(syntax.reasoning, prompt.rendered.text),
      .parse_tools = !tools.empty(),
      .stream_arguments = stream};
  plan.tools = std::move(tools);
  if (format) TQ_RETURN_IF_ERROR(ConstrainAnswer(call, *format, plan));
  plan.request.prompt = std::move(prompt.ids);
  plan.rendered = std::move(prompt.rendered);
  plan.history = std::move(history);
  return plan;
}

}  // namespace tq::server
