#include "server/openai/chat_writer.h"

#include <ctime>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "server/ids.h"
#include "server/logprobs.h"
#include "server/openai/usage.h"
#include "server/sse.h"

namespace tq::server {
namespace {

OrderedJson CallJson(const ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

// {"content": [...]}; null when they are not wanted.
OrderedJson LogprobsField(const Call& call, const ChatForm& form,
                          std::span<const ShownToken> tokens) {
  if (!form.logprobs) return {};
  return {{"content", TokenList(*call.model->text().tokenizer, tokens)}, {"refusal", nullptr}};
}

class ChatObject final : public AnswerWriter {
 public:
  ChatObject(const Call& call, const ChatForm& form)
      : call_(call), form_(form), answers_(form.num_answers) {}

  void Begin() override {}
  void KeepAlive() override {}
  void Add(size_t answer, const AnswerEvent& event) override {
    Answer& one = answers_[answer];
    AddEvent(event.event, one.message);
    one.tokens.insert(one.tokens.end(), event.tokens.begin(), event.tokens.end());
  }
  void EndAnswer(size_t, const AnswerEnd&) override {}
  void Fail(const ApiError& error) override { call_.Fail(error); }

  void End(std::span<const AnswerEnd> ends) override {
    OrderedJson choices = OrderedJson::array();
    for (size_t i = 0; i < answers_.size(); ++i) {
      choices.push_back({{"index", i},
                         {"message", MessageJson(answers_[i].message)},
                         {"logprobs", LogprobsField(call_, form_, answers_[i].tokens)},
                         {"finish_reason", OutcomeName(ends[i])}});
    }
    call_.Reply({{"id", NewId("chatcmpl-")},
                 {"object", "chat.completion"},
                 {"created", std::time(nullptr)},
                 {"model", form_.model},
                 {"choices", std::move(choices)},
                 {"usage", OpenAiUsage(ends, form_.num_answers)}});
  }

 private:
  struct Answer {
    ChatMessage message;
    std::vector<ShownToken> tokens;
  };

  static OrderedJson MessageJson(const ChatMessage& answer) {
    OrderedJson message = {{"role", "assistant"}};
    const std::string text = answer.Text();
    message["content"] =
        text.empty() && !answer.tool_calls.empty() ? OrderedJson() : OrderedJson(text);
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    for (const ToolCall& call : answer.tool_calls) message["tool_calls"].push_back(CallJson(call));
    return message;
  }

  const Call call_;
  const ChatForm form_;
  std::vector<Answer> answers_;
};

class ChatStream final : public AnswerWriter {
 public:
  ChatStream(const Call& call, const ChatForm& form)
      : call_(call), exchange_(*call.exchange), form_(form) {}

  void Begin() override {
    call_.StartEvents();
    for (size_t i = 0; i < form_.num_answers; ++i) {
      Delta(i, {{"role", "assistant"}, {"content", ""}});
    }
  }

  void Add(size_t answer, const AnswerEvent& piece) override {
    const OutputEvent& event = piece.event;
    switch (event.kind) {
      case OutputEvent::Kind::kText:
        return Delta(answer, {{"content", event.text}}, LogprobsField(call_, form_, piece.tokens));
      case OutputEvent::Kind::kReasoning:
        return Delta(answer, {{"reasoning_content", event.text}});
      case OutputEvent::Kind::kToolBegin:
        return ToolDelta(answer, {{"index", event.tool_index},
                                  {"id", event.tool_id},
                                  {"type", "function"},
                                  {"function", {{"name", event.text}, {"arguments", ""}}}});
      case OutputEvent::Kind::kToolArguments:
        return ToolDelta(answer,
                         {{"index", event.tool_index}, {"function", {{"arguments", event.text}}}});
      case OutputEvent::Kind::kToolEnd:
        return;
    }
  }

  // A comment does not count as life for every client; a piece of no text does.
  void KeepAlive() override { Delta(0, {{"content", ""}}); }

  void EndAnswer(size_t answer, const AnswerEnd& end) override {
    Chunk({{"index", answer},
           {"delta", OrderedJson::object()},
           {"logprobs", nullptr},
           {"finish_reason", OutcomeName(end)}});
  }

  void End(std::span<const AnswerEnd> ends) override {
    if (form_.include_usage) {
      OrderedJson chunk = Base();
      chunk["choices"] = OrderedJson::array();
      chunk["usage"] = OpenAiUsage(ends, form_.num_answers);
      exchange_.Write(SseData(chunk));
    }
    exchange_.Write("data: [DONE]\n\n");
    exchange_.EndStream();
  }

  void Fail(const ApiError& error) override {
    exchange_.Write(SseData(ErrorBody(call_.style, error, call_.request_id)));
    exchange_.EndStream();
  }

 private:
  OrderedJson Base() const {
    return {{"id", id_},
            {"object", "chat.completion.chunk"},
            {"created", created_},
            {"model", form_.model}};
  }
  void Chunk(OrderedJson choice) {
    OrderedJson chunk = Base();
    chunk["choices"] = OrderedJson::array({std::move(choice)});
    exchange_.Write(SseData(chunk));
  }
  void Delta(size_t answer, OrderedJson delta, OrderedJson logprobs = {}) {
    Chunk({{"index", answer},
           {"delta", std::move(delta)},
           {"logprobs", std::move(logprobs)},
           {"finish_reason", nullptr}});
  }
  void ToolDelta(size_t answer, OrderedJson call) {
    Delta(answer, {{"tool_calls", OrderedJson::array({std::move(call)})}});
  }

  const Call call_;
  Exchange& exchange_;
  const ChatForm form_;
  const std::string id_ = NewId("chatcmpl-");
  const std::time_t created_ = std::time(nullptr);
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeChatWriter(const Call& call, const ChatForm& form) {
  if (form.stream) return std::make_unique<ChatStream>(call, form);
  return std::make_unique<ChatObject>(call, form);
}

}  // namespace tq::server
