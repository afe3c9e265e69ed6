// POST /v1/completions.
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/answer_constraint.h"
#include "server/chat_plan.h"
#include "server/fields.h"
#include "server/openai/completion_writer.h"
#include "server/openai/prompts.h"
#include "server/router.h"

namespace tq::server {
namespace {

// What echo gives back: a prompt of ids as their text.
std::vector<std::string> EchoTexts(const RequestNode& prompt,
                                   const std::vector<std::vector<int32_t>>& prompts,
                                   const Tokenizer& tokenizer) {
  const bool is_list =
      prompt.IsList() && (prompt.value()[0].is_string() || prompt.value()[0].is_array());
  std::vector<std::string> texts;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const OrderedJson& one = is_list ? prompt.value()[i] : prompt.value();
    texts.push_back(one.is_string() ? one.get<std::string>() : tokenizer.Decode(prompts[i], false));
  }
  return texts;
}

struct CompletionRequest {
  AnswerPlan plan;
  CompletionForm form;
  std::optional<GrammarSpec> format;
};

Status ReadForm(const RequestNode& body, const Call& call, ChatAsk& ask, CompletionForm& form) {
  form.model = call.model_name;
  TQ_ASSIGN_OR_RETURN(const auto stream, OptionalBool(body["stream"]));
  form.stream = stream.value_or(false);
  TQ_ASSIGN_OR_RETURN(const auto usage, OptionalBool(body["stream_options"]["include_usage"]));
  form.include_usage = usage.value_or(call.service.options().stream_usage);
  TQ_ASSIGN_OR_RETURN(const std::string suffix, body["suffix"].OptionalText());
  if (!suffix.empty()) return body["suffix"].Expected("no text (not served)");
  TQ_ASSIGN_OR_RETURN(const auto logprobs,
                      OptionalInt(body["logprobs"], 0, TokenLogprobs::kMaxTop));
  ask.num_logprobs = static_cast<int>(logprobs.value_or(-1));
  form.logprobs = logprobs.has_value();
  form.answers_per_prompt = static_cast<size_t>(ask.num_answers);
  return Status::Ok();
}

Result<CompletionRequest> ReadRequest(const OrderedJson& json, const Call& call) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr size_t kMaxPrompts = 128;
  const RequestNode body(json, "");
  CompletionRequest request;
  ChatAsk ask;
  TQ_RETURN_IF_ERROR(ReadCommon(body, call, ask));
  TQ_RETURN_IF_ERROR(ReadForm(body, call, ask, request.form));
  TQ_ASSIGN_OR_RETURN(const auto max_tokens, OptionalInt(body["max_tokens"], 1, kMost));
  ask.max_tokens = max_tokens.value_or(-1);
  TQ_ASSIGN_OR_RETURN(ask.stops, ReadStops(body["stop"]));
  TQ_ASSIGN_OR_RETURN(auto prompts, ReadPrompts(body["prompt"], *call.model, kMaxPrompts));
  TQ_ASSIGN_OR_RETURN(const auto echo, OptionalBool(body["echo"]));
  if (echo.value_or(false)) {
    if (request.form.logprobs) {
      return InvalidArgument(
          "logprobs: expected none beside echo (those of a prompt are not served), found some");
    }
    request.form.echo = EchoTexts(body["prompt"], prompts, *call.model->text().tokenizer);
  }
  request.form.num_prompts = prompts.size();
  request.format = std::move(ask.format);
  request.plan = MakePlan(call, std::move(ask));
  request.plan.request.prompt = std::move(prompts.front());
  prompts.erase(prompts.begin());
  request.plan.more_prompts = std::move(prompts);
  return request;
}

}  // namespace

void Completions(const Call& asked) {
  const auto opened = OpenModelCall(asked);
  if (!opened) return;
  const Call& call = opened->call;
  auto request = ReadRequest(opened->body, call);
  if (!request.ok()) return call.Fail(request.status());
  if (request->format) {
    auto constraint = ConstrainFormat(call, *request->format, request->plan);
    if (!constraint.ok()) return call.Fail(constraint.status());
    request->plan.request.constraint = std::move(constraint).value();
  }
  Generate(call, std::move(request->plan), MakeCompletionWriter(call, std::move(request->form)));
}

}  // namespace tq::server
