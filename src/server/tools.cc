// Endpoints of our own: /tokenize, /detokenize, /props, /metrics, /openapi.json.
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "chat/parse_messages.h"
#include "codec/kv_format.h"
#include "server/chat_prompt_ids.h"
#include "server/fields.h"
#include "server/router.h"

namespace tq::server {
namespace {

Result<OrderedJson> TokenizeBody(const Call& call, const OrderedJson& json) {
  const RequestNode body(json, "");
  std::vector<int32_t> ids;
  if (!body["messages"].IsNull()) {
    TQ_ASSIGN_OR_RETURN(ChatInput input, ParseOpenAiChat(json));
    ChatPromptOptions options;
    TQ_RETURN_IF_ERROR(
        ReadTemplateVariables(body, call.service.options().template_variables, options));
    TQ_ASSIGN_OR_RETURN(PromptIds prompt, MakePromptIds(call, input, options));
    ids = std::move(prompt.ids);
  } else {
    // Two names of one thing, by server.
    const RequestNode text = body["content"].IsNull() ? body["prompt"] : body["content"];
    TQ_ASSIGN_OR_RETURN(const std::string content, text.Text());
    TQ_ASSIGN_OR_RETURN(const auto add_special, OptionalBool(body["add_special"]));
    TQ_ASSIGN_OR_RETURN(const auto parse_special, OptionalBool(body["parse_special"]));
    ids = call.model->text().tokenizer->Encode(content,
                                               {.add_special_tokens = add_special.value_or(false),
                                                .parse_special = parse_special.value_or(true)});
  }
  OrderedJson answer = {{"tokens", ids}, {"count", ids.size()}};
  answer["max_model_len"] = call.model->max_context();
  return answer;
}

Result<OrderedJson> DetokenizeBody(const ServedModel& model, const OrderedJson& json) {
  const RequestNode list = RequestNode(json, "")["tokens"];
  if (!list.IsList()) return list.Expected("a list of token ids");
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> nodes, list.List());
  std::vector<int32_t> ids;
  for (const RequestNode& node : nodes) {
    if (node.IsNull()) return node.Expected("a token id");
    TQ_ASSIGN_OR_RETURN(const auto id, OptionalInt(node, 0, model.vocab_size() - 1));
    ids.push_back(static_cast<int32_t>(*id));
  }
  const std::string text = model.text().tokenizer->Decode(ids, false);
  return OrderedJson{{"content", text}, {"prompt", text}};
}

// The prompt of a short conversation; empty: the template does not take it.
std::string TrialPrompt(const ChatPrompt& chat, const ChatPromptOptions& options) {
  ChatInput input;
  input.messages.push_back(MakeMessage(ChatRole::kUser, "Hi"));
  const Result<std::string> prompt = chat.Render(input, options);
  return prompt.ok() ? *prompt : "";
}

// How the chat template lets a client say how much to think.
const char* ThinkingControl(const TextAssets& text) {
  if (!text.chat) return "none";
  const auto changes = [&chat = *text.chat](const char* effort, const char* other) {
    return TrialPrompt(chat, {.reasoning_effort = effort}) !=
           TrialPrompt(chat, {.reasoning_effort = other});
  };
  if (changes("low", "high")) return "levels";
  return changes("none", "high") ? "switch" : "none";
}

}  // namespace

void Tokenize(const Call& call) {
  const auto opened = OpenModelCall(call);
  if (!opened) return;
  const auto answer = TokenizeBody(opened->call, opened->body);
  if (!answer.ok()) return call.Fail(answer.status());
  call.Reply(*answer);
}

void Detokenize(const Call& call) {
  const auto opened = OpenModelCall(call);
  if (!opened) return;
  const auto answer = DetokenizeBody(*opened->call.model, opened->body);
  if (!answer.ok()) return call.Fail(answer.status());
  call.Reply(*answer);
}

namespace {

// null: there is none. What it holds is known while the model is loaded.
OrderedJson DiskCacheJson(const DiskCacheOptions& options, const PoolStats& stats) {
  if (options.folder.empty()) return {};
  OrderedJson bytes;
  if (stats.engine) bytes = stats.engine->disk_bytes;
  return {{"folder", options.folder},         {"budget_bytes", options.budget_bytes},
          {"bytes", std::move(bytes)},        {"min_tokens", options.min_tokens},
          {"save_every", options.save_every}, {"prefill_checkpoints", options.prefill_checkpoints}};
}

}  // namespace

void Props(const Call& call) {
  const ServedModel* model = ModelOfQuery(call);
  if (model == nullptr) return;
  const ModelCard& card = model->card();
  const EngineOptions& options = card.engine;
  const SamplingParams& sampling = card.text->sampling;
  const std::vector<PoolStats> stats = call.service.pool().Stats();
  OrderedJson models = OrderedJson::array();
  for (const auto& one : call.service.models()) models.push_back(one->name());
  call.Reply({{"version", TQ_VERSION},
              {"model", card.name},
              {"models", std::move(models)},
              {"state", ModelStateName(stats[model->index()].state)},
              {"backend", card.backend},
              {"context_length", options.max_context},
              {"kv_tokens", options.kv_tokens},
              {"max_batch", options.max_sequences},
              {"max_queue", options.max_queue},
              {"prefill_chunk", options.prefill_chunk},
              {"prefix_cache", options.prefix_cache},
              {"kv_format", KvSettingsText(options.kv)},
              {"kv_bytes_per_token", card.kv_bytes_per_token},
              {"memory_bytes", card.memory_bytes},
              {"disk_cache", DiskCacheJson(options.disk_cache, stats[model->index()])},
              {"max_tokens", call.service.options().max_tokens},
              {"vocab_size", card.vocab_size},
              {"chat_template_args", call.service.options().template_variables},
              {"has_chat_template", card.text->chat.has_value()},
              {"thinking", ThinkingControl(*card.text)},
              {"tools", card.text->chat && card.text->chat->traits(true).takes_tools},
              {"default_sampling",
               {{"temperature", sampling.temperature},
                {"top_p", sampling.top_p},
                {"top_k", sampling.top_k},
                {"min_p", sampling.min_p},
                {"repetition_penalty", sampling.repetition_penalty}}}});
}

void Metrics(const Call& call) {
  Service& service = call.service;
  std::vector<ModelMetrics> models;
  const std::vector<PoolStats> stats = service.pool().Stats();
  for (const auto& model : service.models()) {
    models.push_back({.name = model->name(),
                      .kv_bytes_per_token = model->card().kv_bytes_per_token,
                      .memory_bytes = model->card().memory_bytes,
                      .stats = stats[model->index()]});
  }
  call.Reply(HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                          .body = service.metrics().Text(models, service.num_connections())});
}

void OpenApi(const Call& call) {
  OrderedJson paths = OrderedJson::object();
  for (const Endpoint& endpoint : Endpoints()) {
    std::string path(endpoint.path);
    if (path.ends_with("*}")) path.erase(path.size() - 2, 1);
    std::string method(endpoint.method);
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    OrderedJson operation = {{"summary", endpoint.doc},
                             {"responses", {{"200", {{"description", "OK"}}}}}};
    if (endpoint.method == "POST") {
      operation["requestBody"] = {{"content", {{"application/json", OrderedJson::object()}}}};
    }
    paths[path][method] = std::move(operation);
  }
  call.Reply({{"openapi", "3.1.0"},
              {"info", {{"title", "turboquant"}, {"version", TQ_VERSION}}},
              {"paths", std::move(paths)}});
}

}  // namespace tq::server
