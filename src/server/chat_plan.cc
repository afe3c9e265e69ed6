#include "server/chat_plan.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "server/answer_constraint.h"
#include "server/answer_format.h"
#include "server/chat_prompt_ids.h"
#include "server/fields.h"

namespace tq::server {

namespace {

constexpr int64_t kMaxAnswers = 128;

// best_of is the number of answers of which the n best are given: served when it is all of them.
Status ReadNumAnswers(const RequestNode& body, ChatAsk& ask) {
  TQ_ASSIGN_OR_RETURN(const auto n, OptionalInt(body["n"], 1, kMaxAnswers));
  ask.num_answers = n.value_or(1);
  TQ_ASSIGN_OR_RETURN(const auto best_of, OptionalInt(body["best_of"], 1, kMaxAnswers));
  if (best_of.value_or(ask.num_answers) == ask.num_answers) return Status::Ok();
  return body["best_of"].Expected(
      fmt::format("{}, as n (answers are not ranked)", ask.num_answers));
}

}  // namespace

Status ReadCommon(const RequestNode& body, const Call& call, ChatAsk& ask) {
  TQ_RETURN_IF_ERROR(ReadNumAnswers(body, ask));
  TQ_ASSIGN_OR_RETURN(ask.sampling, ReadSampling(body, call.model->text()));
  TQ_ASSIGN_OR_RETURN(const auto min_tokens, OptionalInt(body["min_tokens"], 0, 1 << 30));
  ask.min_tokens = min_tokens.value_or(0);
  TQ_ASSIGN_OR_RETURN(const auto ignore_end, OptionalBool(body["ignore_eos"]));
  ask.ignore_end = ignore_end.value_or(false);
  TQ_ASSIGN_OR_RETURN(ask.format, ReadAnswerFormat(body, &ask.format_field));
  return ReadTemplateVariables(body, call.service.options().template_variables, ask.prompt);
}

Status CheckOneAnswer(const RequestNode& body, const ChatAsk& ask) {
  if (ask.num_answers == 1) return Status::Ok();
  return body["n"].Expected("1 (this API has one answer)");
}

AnswerPlan MakePlan(const Call& call, ChatAsk ask) {
  const TextAssets& text = call.model->text();
  AnswerPlan plan;
  plan.request.sampling = std::move(ask.sampling);
  plan.request.max_tokens = ask.max_tokens;
  plan.request.min_tokens = ask.min_tokens;
  plan.request.num_logprobs = ask.num_logprobs;
  plan.num_answers = ask.num_answers;
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
  TQ_ASSIGN_OR_RETURN(PromptIds prompt, MakePromptIds(call, ask.input, ask.prompt));
  for (const std::string& note : prompt.rendered.notes) {
    // A wish that the template cannot express; the others are about how a prompt was made.
    const bool is_wish = note.starts_with("reasoning_effort");
    call.service.log().Write(is_wish ? LogLevel::kInfo : LogLevel::kDebug, "note",
                             {{"id", call.request_id}, {"what", note}});
    if (is_wish) call.exchange->AddHeader("turboquant-note", note);
  }
  std::vector<ToolSpec> tools = std::move(ask.input.tools);
  const bool stream = ask.stream;
  const std::optional<GrammarSpec> format = std::move(ask.format);
  const ToolChoice choice = std::move(ask.choice);
  const int64_t max_thoughts = ask.max_thoughts;
  const std::string format_field = std::move(ask.format_field);
  AnswerPlan plan = MakePlan(call, std::move(ask));
  const OutputSyntax& syntax = call.model->text().chat->syntax(!tools.empty());
  plan.parser = OutputParserOptions{
      .syntax = syntax,
      .starts_in_reasoning = PromptOpensReasoning(syntax.reasoning, prompt.rendered.text),
      .parse_tools = !tools.empty(),
      .stream_arguments = stream};
  plan.tools = std::move(tools);
  plan.one_call = choice.one_call;
  std::unique_ptr<Constraint> constraint;
  if (choice.forced) {
    TQ_ASSIGN_OR_RETURN(constraint, ConstrainCalls(call, choice.names, plan));
  } else if (format && !plan.tools.empty()) {
    TQ_ASSIGN_OR_RETURN(constraint, ConstrainCallsOrFormat(call, *format, format_field, plan));
  } else if (format) {
    TQ_ASSIGN_OR_RETURN(constraint, ConstrainFormat(call, *format, plan));
  }
  SetConstraint(call, std::move(constraint), max_thoughts, plan);
  plan.request.prompt = std::move(prompt.ids);
  plan.rendered = std::move(prompt.rendered);
  plan.history = std::move(history);
  return plan;
}

}  // namespace tq::server
