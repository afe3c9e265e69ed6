#include "server/openai/chat_writer.h"

#include <ctime>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/ids.h"
#include "server/openai/usage.h"
#include "server/sse.h"

namespace tq::server {
namespace {

OrderedJson CallJson(const ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

class ChatObject final : public AnswerWriter {
 public:
  ChatObject(const Call& call, const ChatForm& form) : call_(call), form_(form) {}

  void Begin() override {}
  void KeepAlive() override {}
  void Add(const OutputEvent& event) override { AppendEvent(event, message_); }
  void Fail(const ApiError& error) override { call_.Fail(error); }

  void End(const AnswerEnd& end) override {
    OrderedJson message = {{"role", "assistant"}};
    const std::string text = message_.Text();
    message["content"] =
        text.empty() && !message_.tool_calls.empty() ? OrderedJson() : OrderedJson(text);
    if (!message_.reasoning.empty()) message["reasoning_content"] = message_.reasoning;
    for (const ToolCall& call : message_.tool_calls) {
      message["tool_calls"].push_back(CallJson(call));
    }
    const OrderedJson choice = {{"index", 0},
                                {"message", std::move(message)},
                                {"logprobs", nullptr},
                                {"finish_reason", OpenAiFinish(end)}};
    call_.Reply({{"id", NewId("chatcmpl-")},
                 {"object", "chat.completion"},
                 {"created", std::time(nullptr)},
                 {"model", form_.model},
                 {"choices", OrderedJson::array({choice})},
                 {"usage", OpenAiUsage(end)}});
  }

 private:
  const Call call_;
  const ChatForm form_;
  ChatMessage message_;
};

class ChatStream final : public AnswerWriter {
 public:
  ChatStream(const Call& call, const ChatForm& form)
      : call_(call), exchange_(*call.exchange), form_(form) {}

  void Begin() override {
    call_.StartEvents();
    Delta({{"role", "assistant"}, {"content", ""}});
  }

  void Add(const OutputEvent& event) override {
    switch (event.kind) {
      case OutputEvent::Kind::kText:
        return Delta({{"content", event.text}});
      case OutputEvent::Kind::kReasoning:
        return Delta({{"reasoning_content", event.text}});
      case OutputEvent::Kind::kToolBegin:
        return ToolDelta({{"index", event.tool_index},
                          {"id", event.tool_id},
                          {"type", "function"},
                          {"function", {{"name", event.text}, {"arguments", ""}}}});
      case OutputEvent::Kind::kToolArguments:
        return ToolDelta({{"index", event.tool_index}, {"function", {{"arguments", event.text}}}});
      case OutputEvent::Kind::kToolEnd:
        return;
    }
  }

  // A comment does not count as life for every client; a piece of no text does.
  void KeepAlive() override { Delta({{"content", ""}}); }

  void End(const AnswerEnd& end) override {
    Chunk({{"index", 0},
           {"delta", OrderedJson::object()},
           {"logprobs", nullptr},
           {"finish_reason", OpenAiFinish(end)}});
    if (form_.include_usage) {
      OrderedJson chunk = Base();
      chunk["choices"] = OrderedJson::array();
      chunk["usage"] = OpenAiUsage(end);
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
  void Delta(OrderedJson delta) {
    Chunk({{"index", 0},
           {"delta", std::move(delta)},
           {"logprobs", nullptr},
           {"finish_reason", nullptr}});
  }
  void ToolDelta(OrderedJson call) {
    Delta({{"tool_calls", OrderedJson::array({std::move(call)})}});
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
