// POST /v1/responses, and what can be done with a response by its id.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "chat/parse_messages.h"
#include "server/chat_plan.h"
#include "server/fields.h"
#include "server/ids.h"
#include "server/responses/response_writer.h"
#include "server/router.h"
#include "server/thought_limits.h"

namespace tq::server {
namespace {

struct ResponseRequest {
  ChatAsk ask;
  ResponseForm form;
};

ApiError NoResponse(std::string_view field, const std::string& id) {
  ApiError error =
      NotFoundError(fmt::format("{}: expected the id of a stored response, found \"{}\"", field,
                                id.substr(0, 100)),
                    "response_not_found");
  error.param = field;
  return error;
}

OrderedJson ParseStored(const std::string& text) {
  auto json = ParseOrderedJson(text, "stored response");
  return json.ok() ? std::move(json).value() : OrderedJson();
}

// The request's value, or what holds when it says nothing.
OrderedJson Echo(const OrderedJson& json, const char* key, OrderedJson otherwise) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? std::move(otherwise) : *found;
}

OrderedJson EchoFields(const OrderedJson& json, const std::string& model,
                       const SamplingParams& sampling, bool store) {
  return {{"instructions", Echo(json, "instructions", nullptr)},
          {"max_output_tokens", Echo(json, "max_output_tokens", nullptr)},
          {"model", model},
          {"parallel_tool_calls", Echo(json, "parallel_tool_calls", true)},
          {"previous_response_id", Echo(json, "previous_response_id", nullptr)},
          {"prompt_cache_key", Echo(json, "prompt_cache_key", nullptr)},
          {"reasoning", Echo(json, "reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
          {"service_tier", "default"},
          {"store", store},
          {"temperature", sampling.temperature},
          {"text", Echo(json, "text", {{"format", {{"type", "text"}}}})},
          {"tool_choice", Echo(json, "tool_choice", "auto")},
          {"tools", Echo(json, "tools", OrderedJson::array())},
          {"top_logprobs", Echo(json, "top_logprobs", 0)},
          {"top_p", sampling.top_p},
          {"truncation", "disabled"},
          {"user", Echo(json, "user", nullptr)},
          {"metadata", Echo(json, "metadata", OrderedJson::object())}};
}

// A text alone is a message of the user.
OrderedJson InputItems(const OrderedJson& input) {
  if (!input.is_string()) return input;
  return OrderedJson::array({{{"type", "message"}, {"role", "user"}, {"content", input}}});
}

Status RefuseOthers(const RequestNode& body) {
  TQ_ASSIGN_OR_RETURN(const auto background, OptionalBool(body["background"]));
  if (background.value_or(false)) return body["background"].Expected("false (not served)");
  const RequestNode conversation = body["conversation"];
  if (!conversation.IsNull()) return conversation.Expected("nothing: use previous_response_id");
  return Status::Ok();
}

// Alternatives of each token; -1: no logprobs. They come when "include" or top_logprobs says so.
Result<int> ReadLogprobs(const RequestNode& body) {
  TQ_ASSIGN_OR_RETURN(const auto top, OptionalInt(body["top_logprobs"], 0, TokenLogprobs::kMaxTop));
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> include, body["include"].List());
  const bool wanted = std::any_of(include.begin(), include.end(), [](const RequestNode& node) {
    return node.IsText() && node.text() == "message.output_text.logprobs";
  });
  if (!wanted && top.value_or(0) == 0) return -1;
  return static_cast<int>(top.value_or(0));
}

Result<ResponseRequest> ReadRequest(const OrderedJson& json, const OrderedJson& earlier,
                                    const Call& call) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const RequestNode body(json, "");
  ResponseRequest request;
  TQ_ASSIGN_OR_RETURN(request.ask.input, ParseResponsesChat(json, earlier));
  TQ_RETURN_IF_ERROR(ReadCommon(body, call, request.ask));
  TQ_RETURN_IF_ERROR(CheckOneAnswer(body, request.ask));
  TQ_ASSIGN_OR_RETURN(request.ask.num_logprobs, ReadLogprobs(body));
  TQ_RETURN_IF_ERROR(RefuseOthers(body));
  TQ_ASSIGN_OR_RETURN(const auto most, OptionalInt(body["max_output_tokens"], 1, kMost));
  request.ask.max_tokens = most.value_or(-1);
  TQ_ASSIGN_OR_RETURN(request.ask.choice, ReadToolChoice(body, request.ask.input));
  TQ_ASSIGN_OR_RETURN(request.ask.prompt.reasoning_effort,
                      body["reasoning"]["effort"].OptionalText());
  TQ_ASSIGN_OR_RETURN(request.ask.max_thoughts, ReadThoughtLimit(body, request.ask.prompt));
  TQ_ASSIGN_OR_RETURN(const auto stream, OptionalBool(body["stream"]));
  TQ_ASSIGN_OR_RETURN(const auto store, OptionalBool(body["store"]));
  ResponseForm& form = request.form;
  form.stream = request.ask.stream = stream.value_or(false);
  form.store = store.value_or(true);
  form.echo = EchoFields(json, call.model_name, request.ask.sampling, form.store);
  form.tools = request.ask.input.tools;
  if (!form.store) return request;
  form.input = InputItems(body["input"].value());
  form.items = earlier.is_array() ? earlier : OrderedJson::array();
  for (const OrderedJson& item : form.input) form.items.push_back(item);
  return request;
}

}  // namespace

void Responses(const Call& asked) {
  const auto opened = OpenModelCall(asked);
  if (!opened) return;
  const Call& call = opened->call;
  const auto previous = RequestNode(opened->body, "")["previous_response_id"].OptionalText();
  if (!previous.ok()) return call.Fail(previous.status());
  OrderedJson earlier;
  if (!previous->empty()) {
    const auto stored = call.service.responses().Get(*previous);
    if (stored == nullptr) return call.Fail(NoResponse("previous_response_id", *previous));
    earlier = ParseStored(stored->items);
  }
  auto request = ReadRequest(opened->body, earlier, call);
  if (!request.ok()) return call.Fail(request.status());
  auto plan = MakeChatPlan(call, std::move(request->ask));
  if (!plan.ok()) return call.Fail(plan.status());
  const std::string id = NewId("resp_");
  request->form.id = id;
  Generate(
      call, std::move(plan).value(), MakeResponseWriter(call, std::move(request->form)),
      [&](std::function<void()> cancel) { call.service.responses().Begin(id, std::move(cancel)); });
}

void GetResponse(const Call& call) {
  const std::string& id = call.arguments.front();
  const auto stored = call.service.responses().Get(id);
  if (stored == nullptr) return call.Fail(NoResponse("response_id", id));
  call.Reply(HttpResponse{.body = stored->response});
}

void ListInputItems(const Call& call) {
  const std::string& id = call.arguments.front();
  const auto stored = call.service.responses().Get(id);
  if (stored == nullptr) return call.Fail(NoResponse("response_id", id));
  call.Reply({{"object", "list"}, {"data", ParseStored(stored->input)}, {"has_more", false}});
}

void DeleteResponse(const Call& call) {
  const std::string& id = call.arguments.front();
  if (!call.service.responses().Remove(id)) return call.Fail(NoResponse("response_id", id));
  call.Reply({{"id", id}, {"object", "response"}, {"deleted", true}});
}

void CancelResponse(const Call& call) {
  const std::string& id = call.arguments.front();
  if (call.service.responses().Cancel(id)) {
    return call.Reply({{"id", id}, {"object", "response"}, {"status", "cancelled"}});
  }
  const auto stored = call.service.responses().Get(id);
  if (stored == nullptr) return call.Fail(NoResponse("response_id", id));
  call.Reply(HttpResponse{.body = stored->response});  // it has ended before
}

}  // namespace tq::server
