#include "server/anthropic/message_writer.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "server/ids.h"
#include "server/sse.h"

namespace tq::server {
namespace {

using Kind = OutputEvent::Kind;

std::string_view StopReason(AnswerEnd::Reason reason) {
  switch (reason) {
    case AnswerEnd::Reason::kStopString:
      return "stop_sequence";
    case AnswerEnd::Reason::kLength:
      return "max_tokens";
    case AnswerEnd::Reason::kToolCalls:
      return "tool_use";
    default:
      return "end_turn";
  }
}

// input_tokens are those that no cache had.
OrderedJson Usage(int64_t prompt_tokens, int64_t cached_tokens, int64_t output_tokens) {
  return {{"input_tokens", prompt_tokens - cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens},
          {"output_tokens", output_tokens}};
}

// Builds the blocks, and shows each change when it streams.
class MessageWriter final : public AnswerWriter {
 public:
  MessageWriter(const Call& call, MessageForm form) : call_(call), form_(std::move(form)) {}

  void Begin() override {
    if (!form_.stream) return;
    call_.StartEvents();
    OrderedJson message = Message(OrderedJson::array());
    message["usage"] = Usage(form_.prompt_tokens, 0, 0);
    Emit("message_start", {{"message", std::move(message)}});
    KeepAlive();
  }

  void KeepAlive() override { Emit("ping", OrderedJson::object()); }

  void Add(size_t, const AnswerEvent& piece) override {
    const OutputEvent& event = piece.event;
    switch (event.kind) {
      case Kind::kText:
        Open(Kind::kText, {{"type", "text"}, {"text", ""}});
        return Append("text", "text_delta", "text", event.text);
      case Kind::kReasoning:
        Open(Kind::kReasoning, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
        return Append("thinking", "thinking_delta", "thinking", event.text);
      case Kind::kToolBegin:
        CloseBlock();
        arguments_.clear();
        return Open(Kind::kToolBegin, {{"type", "tool_use"},
                                       {"id", event.tool_id},
                                       {"name", event.text},
                                       {"input", OrderedJson::object()}});
      case Kind::kToolArguments:
        arguments_ += event.text;
        return Delta({{"type", "input_json_delta"}, {"partial_json", event.text}});
      case Kind::kToolEnd:
        return CloseBlock();
    }
  }

  void EndAnswer(size_t, const AnswerEnd&) override {}

  void End(std::span<const AnswerEnd> ends) override {
    const AnswerEnd& end = ends.front();
    // A message has at least one block.
    if (blocks_.empty()) Open(Kind::kText, {{"type", "text"}, {"text", ""}});
    CloseBlock();
    const GenerateStats& stats = end.stats;
    const OrderedJson usage =
        Usage(stats.prompt_tokens, stats.cached_tokens, stats.generated_tokens);
    OrderedJson stop = {{"stop_reason", StopReason(end.reason)}, {"stop_sequence", nullptr}};
    if (end.reason == AnswerEnd::Reason::kStopString) stop["stop_sequence"] = end.stop_string;
    if (form_.stream) {
      Emit("message_delta", {{"delta", stop}, {"usage", usage}});
      Emit("message_stop", OrderedJson::object());
      return call_.exchange->EndStream();
    }
    OrderedJson message = Message(std::move(blocks_));
    message.update(stop);
    message["usage"] = usage;
    call_.Reply(message);
  }

  void Fail(const ApiError& error) override {
    if (!form_.stream) return call_.Fail(error);
    call_.exchange->Write(SseEvent("error", ErrorBody(call_.style, error, call_.request_id)));
    call_.exchange->EndStream();
  }

 private:
  OrderedJson Message(OrderedJson content) const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", form_.model},
            {"content", std::move(content)},
            {"stop_reason", nullptr},
            {"stop_sequence", nullptr}};
  }

  void Emit(std::string_view type, const OrderedJson& fields) {
    if (!form_.stream) return;
    OrderedJson event = {{"type", type}};
    event.update(fields);
    call_.exchange->Write(SseEvent(type, event));
  }

  // Goes on with the open block if it is of this kind.
  void Open(Kind kind, OrderedJson block) {
    if (open_ && kind_ == kind) return;
    CloseBlock();
    open_ = true;
    kind_ = kind;
    Emit("content_block_start", {{"index", blocks_.size()}, {"content_block", block}});
    blocks_.push_back(std::move(block));
  }

  void Append(const char* field, const char* type, const char* delta_field,
              const std::string& text) {
    blocks_.back()[field].get_ref<std::string&>() += text;
    Delta({{"type", type}, {delta_field, text}});
  }

  void Delta(const OrderedJson& delta) {
    Emit("content_block_delta", {{"index", blocks_.size() - 1}, {"delta", delta}});
  }

  void CloseBlock() {
    if (!std::exchange(open_, false)) return;
    OrderedJson& block = blocks_.back();
    if (kind_ == Kind::kReasoning) {
      // Clients send thoughts back only with one.
      const std::string signature = NewId("tq_");
      block["signature"] = signature;
      Delta({{"type", "signature_delta"}, {"signature", signature}});
    }
    if (kind_ == Kind::kToolBegin) {
      const auto input = ParseOrderedJson(arguments_, "arguments");
      if (input.ok() && input->is_object()) block["input"] = *input;
    }
    Emit("content_block_stop", {{"index", blocks_.size() - 1}});
  }

  const Call call_;
  const MessageForm form_;
  const std::string id_ = NewId("msg_");
  OrderedJson blocks_ = OrderedJson::array();
  bool open_ = false;        // the last block
  Kind kind_ = Kind::kText;  // of it
  std::string arguments_;    // of an open call
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeMessageWriter(const Call& call, const MessageForm& form) {
  return std::make_unique<MessageWriter>(call, form);
}

}  // namespace tq::server
