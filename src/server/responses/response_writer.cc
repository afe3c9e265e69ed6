#include "server/responses/response_writer.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "server/ids.h"
#include "server/logprobs.h"
#include "server/sse.h"

namespace tq::server {
namespace {

using Kind = OutputEvent::Kind;

OrderedJson Usage(const AnswerEnd& end) {
  const GenerateStats& stats = end.stats;
  return {{"input_tokens", stats.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", stats.cached_tokens}}},
          {"output_tokens", stats.generated_tokens},
          {"output_tokens_details", {{"reasoning_tokens", end.reasoning_tokens}}},
          {"total_tokens", stats.prompt_tokens + stats.generated_tokens}};
}

OrderedJson TextPart(const std::string& text, OrderedJson logprobs = OrderedJson::array()) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", OrderedJson::array()},
          {"logprobs", std::move(logprobs)}};
}

// The free text of a call of a custom tool: {"input": text}.
std::string CustomInput(const std::string& arguments) {
  const auto json = ParseOrderedJson(arguments, "arguments");
  if (!json.ok() || !json->is_object()) return arguments;
  const auto input = json->find("input");
  return input != json->end() && input->is_string() ? input->get<std::string>() : arguments;
}

// Builds the items, and shows each change when it streams.
class ResponseWriter final : public AnswerWriter {
 public:
  ResponseWriter(const Call& call, ResponseForm form) : call_(call), form_(std::move(form)) {}
  ~ResponseWriter() override { call_.service.responses().End(form_.id); }

  void Begin() override {
    if (!form_.stream) return;
    call_.StartEvents();
    Emit("response.created", {{"response", Object("in_progress")}});
    KeepAlive();
  }

  void KeepAlive() override {
    if (form_.stream) Emit("response.in_progress", {{"response", Object("in_progress")}});
  }

  void Add(size_t, const AnswerEvent& piece) override {
    const OutputEvent& event = piece.event;
    switch (event.kind) {
      case Kind::kText:
        return AddText(event.text, piece.tokens);
      case Kind::kReasoning:
        return AddReasoning(event.text);
      case Kind::kToolBegin:
        return BeginCall(event);
      case Kind::kToolArguments:
        text_ += event.text;
        if (!is_custom_) Delta("response.function_call_arguments.delta", {}, event.text);
        return;
      case Kind::kToolEnd:
        return CloseItem("completed");
    }
  }

  void EndAnswer(size_t, const AnswerEnd&) override {}

  void End(std::span<const AnswerEnd> ends) override {
    const AnswerEnd& end = ends.front();
    const bool cut = end.reason == AnswerEnd::Reason::kLength;
    CloseItem(cut ? "incomplete" : "completed");
    OrderedJson object = Object(cut ? "incomplete" : "completed");
    object["completed_at"] = cut ? OrderedJson() : OrderedJson(std::time(nullptr));
    if (cut) object["incomplete_details"] = {{"reason", "max_output_tokens"}};
    object["usage"] = Usage(end);
    if (form_.store) Store(object);
    if (!form_.stream) return call_.Reply(object);
    Emit(cut ? "response.incomplete" : "response.completed", {{"response", std::move(object)}});
    call_.exchange->EndStream();
  }

  void Fail(const ApiError& error) override {
    if (!form_.stream) return call_.Fail(error);
    OrderedJson object = Object(error.code == "cancelled" ? "cancelled" : "failed");
    object["error"] = {{"code", error.code}, {"message", error.message}};
    Emit("response.failed", {{"response", std::move(object)}});
    call_.exchange->EndStream();
  }

 private:
  OrderedJson Object(std::string_view status) const {
    OrderedJson object = {{"id", form_.id},          {"object", "response"},
                          {"created_at", created_},  {"status", status},
                          {"completed_at", nullptr}, {"background", false},
                          {"error", nullptr},        {"incomplete_details", nullptr},
                          {"output", output_},       {"usage", nullptr}};
    object.update(form_.echo);
    return object;
  }

  void Store(const OrderedJson& object) {
    OrderedJson items = std::move(form_.items);
    for (const OrderedJson& item : output_) items.push_back(item);
    call_.service.responses().Put(form_.id, {Dump(object), Dump(items), Dump(form_.input)});
  }

  void Emit(std::string_view type, const OrderedJson& fields) {
    if (!form_.stream) return;
    OrderedJson event = {{"type", type}, {"sequence_number", sequence_++}};
    event.update(fields);
    call_.exchange->Write(SseEvent(type, event));
  }

  // An event of the open item.
  void EmitOfItem(std::string_view type, const OrderedJson& fields) {
    if (!form_.stream) return;
    OrderedJson event = {{"item_id", item_["id"]}, {"output_index", output_.size()}};
    event.update(fields);
    Emit(type, event);
  }

  void Delta(std::string_view type, OrderedJson fields, const std::string& text) {
    fields["delta"] = text;
    EmitOfItem(type, fields);
  }

  void OpenItem(Kind kind, OrderedJson item) {
    CloseItem("completed");
    open_ = true;
    kind_ = kind;
    text_.clear();
    item_ = std::move(item);
    Emit("response.output_item.added", {{"output_index", output_.size()}, {"item", item_}});
  }

  void AddText(const std::string& text, std::span<const ShownToken> tokens) {
    if (!open_ || kind_ != Kind::kText) {
      OpenItem(Kind::kText, {{"id", NewId("msg_")},
                             {"type", "message"},
                             {"status", "in_progress"},
                             {"role", "assistant"},
                             {"content", OrderedJson::array()}});
      EmitOfItem("response.content_part.added", {{"content_index", 0}, {"part", TextPart("")}});
    }
    text_ += text;
    OrderedJson logprobs = TokenList(*call_.model->text().tokenizer, tokens);
    for (const OrderedJson& entry : logprobs) logprobs_.push_back(entry);
    Delta("response.output_text.delta", {{"content_index", 0}, {"logprobs", std::move(logprobs)}},
          text);
  }

  void AddReasoning(const std::string& text) {
    if (!open_ || kind_ != Kind::kReasoning) {
      OpenItem(Kind::kReasoning, {{"id", NewId("rs_")},
                                  {"type", "reasoning"},
                                  {"summary", OrderedJson::array()},
                                  {"encrypted_content", nullptr}});
      EmitOfItem("response.reasoning_summary_part.added",
                 {{"summary_index", 0}, {"part", {{"type", "summary_text"}, {"text", ""}}}});
    }
    text_ += text;
    Delta("response.reasoning_summary_text.delta", {{"summary_index", 0}}, text);
  }

  void BeginCall(const OutputEvent& event) {
    const auto tool = std::find_if(form_.tools.begin(), form_.tools.end(),
                                   [&](const ToolSpec& spec) { return spec.name == event.text; });
    const bool known = tool != form_.tools.end();
    is_custom_ = known && tool->is_custom;
    OrderedJson item = {{"id", NewId(is_custom_ ? "ctc_" : "fc_")},
                        {"type", is_custom_ ? "custom_tool_call" : "function_call"},
                        {"status", "in_progress"},
                        {"call_id", event.tool_id},
                        {"name", event.text}};
    if (known && !tool->name_space.empty()) {
      item["namespace"] = tool->name_space;
      const std::string prefix = tool->name_space + "__";
      if (event.text.starts_with(prefix)) item["name"] = event.text.substr(prefix.size());
    }
    item[is_custom_ ? "input" : "arguments"] = "";
    OpenItem(Kind::kToolBegin, std::move(item));
  }

  void CloseItem(std::string_view status) {
    if (!open_) return;
    if (kind_ == Kind::kText) CloseText(status);
    if (kind_ == Kind::kReasoning) CloseReasoning();
    if (kind_ == Kind::kToolBegin) CloseCall(status);
    Emit("response.output_item.done", {{"output_index", output_.size()}, {"item", item_}});
    output_.push_back(std::move(item_));
    open_ = false;
  }

  void CloseText(std::string_view status) {
    EmitOfItem("response.output_text.done",
               {{"content_index", 0}, {"text", text_}, {"logprobs", logprobs_}});
    const OrderedJson part = TextPart(text_, std::exchange(logprobs_, OrderedJson::array()));
    EmitOfItem("response.content_part.done", {{"content_index", 0}, {"part", part}});
    item_["status"] = status;
    item_["content"] = OrderedJson::array({part});
  }

  void CloseReasoning() {
    const OrderedJson part = {{"type", "summary_text"}, {"text", text_}};
    EmitOfItem("response.reasoning_summary_text.done", {{"summary_index", 0}, {"text", text_}});
    EmitOfItem("response.reasoning_summary_part.done", {{"summary_index", 0}, {"part", part}});
    item_["summary"] = OrderedJson::array({part});
  }

  void CloseCall(std::string_view status) {
    item_["status"] = status;
    if (is_custom_) {
      const std::string input = CustomInput(text_);
      Delta("response.custom_tool_call_input.delta", OrderedJson::object(), input);
      EmitOfItem("response.custom_tool_call_input.done", {{"input", input}});
      item_["input"] = input;
      return;
    }
    EmitOfItem("response.function_call_arguments.done",
               {{"name", item_["name"]}, {"arguments", text_}});
    item_["arguments"] = text_;
  }

  const Call call_;
  ResponseForm form_;
  const std::time_t created_ = std::time(nullptr);
  OrderedJson output_ = OrderedJson::array();
  int64_t sequence_ = 0;
  bool open_ = false;  // item_, not yet in output_
  OrderedJson item_;
  Kind kind_ = Kind::kText;                      // of it
  bool is_custom_ = false;                       // likewise
  std::string text_;                             // likewise: text, thoughts or arguments
  OrderedJson logprobs_ = OrderedJson::array();  // of its text
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeResponseWriter(const Call& call, ResponseForm form) {
  return std::make_unique<ResponseWriter>(call, std::move(form));
}

}  // namespace tq::server
