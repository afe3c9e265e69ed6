// POST /v1/completions.
#include <ctime>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/answer_format.h"
#include "server/chat_plan.h"
#include "server/fields.h"
#include "server/ids.h"
#include "server/openai/usage.h"
#include "server/router.h"
#include "server/sse.h"

namespace tq::server {
namespace {

struct CompletionForm {
  std::string model;
  bool stream = false;
  bool include_usage = false;
};

class CompletionWriter final : public AnswerWriter {
 public:
  CompletionWriter(const Call& call, CompletionForm form) : call_(call), form_(std::move(form)) {}

  void Begin() override {
    if (form_.stream) call_.StartEvents();
  }
  void Add(const OutputEvent& event) override {
    if (form_.stream) {
      Chunk(event.text, nullptr);
    } else {
      text_ += event.text;
    }
  }
  void KeepAlive() override {
    if (form_.stream) Chunk("", nullptr);
  }
  void End(const AnswerEnd& end) override {
    if (!form_.stream) {
      OrderedJson answer = Object(text_, OpenAiFinish(end));
      answer["usage"] = OpenAiUsage(end);
      return call_.Reply(answer);
    }
    Chunk("", OpenAiFinish(end));
    if (form_.include_usage) {
      OrderedJson last = Object("", nullptr);
      last["choices"] = OrderedJson::array();
      last["usage"] = OpenAiUsage(end);
      call_.exchange->Write(SseData(last));
    }
    call_.exchange->Write("data: [DONE]\n\n");
    call_.exchange->EndStream();
  }
  void Fail(const ApiError& error) override {
    if (!form_.stream) return call_.Fail(error);
    call_.exchange->Write(SseData(ErrorBody(call_.style, error, call_.request_id)));
    call_.exchange->EndStream();
  }

 private:
  OrderedJson Object(const std::string& text, OrderedJson finish) const {
    OrderedJson choice = {{"index", 0}, {"text", text}, {"logprobs", nullptr}};
    choice["finish_reason"] = std::move(finish);
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", form_.model},
            {"choices", OrderedJson::array({std::move(choice)})}};
  }
  void Chunk(const std::string& text, OrderedJson finish) {
    call_.exchange->Write(SseData(Object(text, std::move(finish))));
  }

  const Call call_;
  const CompletionForm form_;
  const std::string id_ = NewId("cmpl-");
  const std::time_t created_ = std::time(nullptr);
  std::string text_;
};

Result<std::vector<int32_t>> ReadIds(const RequestNode& list, int64_t vocab_size) {
  std::vector<int32_t> ids;
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> nodes, list.List());
  for (const RequestNode& node : nodes) {
    if (node.IsNull()) return node.Expected("a token id");
    TQ_ASSIGN_OR_RETURN(const auto id, OptionalInt(node, 0, vocab_size - 1));
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

// A text, a list of ids, or a list with one of these in it.
Result<std::vector<int32_t>> ReadPrompt(const RequestNode& prompt, const Service& service) {
  constexpr const char* kExpected = "a text or a list of token ids";
  if (prompt.IsText()) {
    const Result<const Tokenizer*> tokenizer = NeedTokenizer(service.text());
    if (!tokenizer.ok()) return InvalidArgument(tokenizer.status().message());
    return (*tokenizer)->Encode(prompt.text(), {.add_special_tokens = true});
  }
  if (!prompt.IsList() || prompt.value().empty()) return prompt.Expected(kExpected);
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> nodes, prompt.List());
  if (!nodes[0].IsText() && !nodes[0].IsList()) return ReadIds(prompt, service.model().vocab_size);
  if (nodes.size() > 1) {
    return InvalidArgument(fmt::format(
        "prompt: expected one prompt, found {}: send a request for each", nodes.size()));
  }
  if (nodes[0].IsList()) return ReadIds(nodes[0], service.model().vocab_size);
  return ReadPrompt(nodes[0], service);
}

Status RefuseOthers(const RequestNode& body) {
  TQ_ASSIGN_OR_RETURN(const auto echo, OptionalBool(body["echo"]));
  if (echo.value_or(false)) return body["echo"].Expected("false (not served)");
  TQ_ASSIGN_OR_RETURN(const std::string suffix, body["suffix"].OptionalText());
  if (!suffix.empty()) return body["suffix"].Expected("no text (not served)");
  if (!body["logprobs"].IsNull()) return body["logprobs"].Expected("nothing (not served yet)");
  return Status::Ok();
}

struct CompletionRequest {
  AnswerPlan plan;
  CompletionForm form;
  std::optional<GrammarSpec> format;
};

Result<CompletionRequest> ReadRequest(const OrderedJson& json, const Service& service) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const RequestNode body(json, "");
  CompletionRequest request;
  TQ_ASSIGN_OR_RETURN(const std::string model, body["model"].OptionalText());
  TQ_ASSIGN_OR_RETURN(request.form.model, service.AnswerName(model));
  ChatAsk ask;
  TQ_RETURN_IF_ERROR(ReadCommon(body, service, ask));
  TQ_RETURN_IF_ERROR(RefuseOthers(body));
  TQ_ASSIGN_OR_RETURN(const auto max_tokens, OptionalInt(body["max_tokens"], 1, kMost));
  ask.max_tokens = max_tokens.value_or(-1);
  TQ_ASSIGN_OR_RETURN(ask.stops, ReadStops(body["stop"]));
  TQ_ASSIGN_OR_RETURN(const auto stream, OptionalBool(body["stream"]));
  request.form.stream = stream.value_or(false);
  TQ_ASSIGN_OR_RETURN(const auto usage, OptionalBool(body["stream_options"]["include_usage"]));
  request.form.include_usage = usage.value_or(service.options().stream_usage);
  TQ_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, ReadPrompt(body["prompt"], service));
  request.format = std::move(ask.format);
  request.plan = MakePlan(service, std::move(ask));
  request.plan.request.prompt = std::move(prompt);
  return request;
}

}  // namespace

void Completions(const Call& call) {
  const auto body = ParseBody(call.request().body);
  if (!body.ok()) return call.Fail(body.status());
  auto request = ReadRequest(*body, call.service);
  if (!request.ok()) return call.Fail(request.status());
  if (request->format) {
    const Status status = ConstrainAnswer(call, *request->format, request->plan);
    if (!status.ok()) return call.Fail(status);
  }
  Generate(call, std::move(request->plan),
           std::make_unique<CompletionWriter>(call, std::move(request->form)));
}

}  // namespace tq::server
