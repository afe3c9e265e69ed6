#include "apps/serve_flags.h"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/config_file.h"
#include "apps/serve_models.h"
#include "base/file.h"
#include "base/json.h"
#include "server/errors.h"

namespace tq {
namespace {

constexpr const char* kKeyVariable = "TURBOQUANT_API_KEY";

void AddNetworkFlags(CLI::App& app, ServeFlags& flags) {
  constexpr const char* kGroup = "Network";
  app.add_option("--host", flags.host, "Address to listen on; 0.0.0.0: every network")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--port", flags.port, "Port; 0: any that is free (it is printed)")
      ->check(InRange(0, 65535))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--unix-socket", flags.unix_socket, "Listen on this socket file instead")
      ->group(kGroup);
  app.add_option("--api-key", flags.api_keys,
                 "Key that clients must send (repeatable); others see it in the list of processes: "
                 "--api-key-file or TURBOQUANT_API_KEY=KEY,... are better")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_option("--api-key-file", flags.api_key_file, "File of keys, one a line")->group(kGroup);
  app.add_option("--rate-limit", flags.rate_limit,
                 "POST requests a minute of each API key (without keys: of all clients together); "
                 "others get 429; 0: no limit")
      ->check(InRange(0, 1'000'000))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--cors", flags.origins,
                 "Origin whose pages may use the server from a browser (repeatable); \"*\": any")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_option("--timeout", flags.timeout, "Seconds for one answer; 0: no limit")
      ->check(InRange(0.0, 1e6))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--drain-timeout", flags.drain_timeout,
                 "Seconds for running answers after Ctrl-C or SIGTERM; a second one ends at once")
      ->check(InRange(0.0, 1e6))
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--prefill-keepalive,!--no-prefill-keepalive", flags.keepalive,
               "Events of a stream while a prompt is computed (default: on)")
      ->group(kGroup);
  app.add_option("--prefill-keepalive-interval", flags.keepalive_interval, "Seconds between them")
      ->check(InRange(0.1, 3600.0))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--http-threads", flags.http_threads, "Threads that read and write requests")
      ->check(InRange(1, 64))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--max-body-mb", flags.max_body_mb, "Largest request, in MB")
      ->check(InRange(int64_t{1}, int64_t{1024}))
      ->capture_default_str()
      ->group(kGroup);
}

void AddServingFlags(CLI::App& app, ServeFlags& flags) {
  constexpr const char* kGroup = "Serving";
  app.add_option(
         "--served-model-name", flags.names,
         "Name of the model for clients (repeatable: the first one, and more names for it); "
         "default: the name of its folder. Several models: --model NAME=PATH")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_flag("--strict-model-name", flags.strict_model,
               "404 for requests with another model name; default: the model answers to any")
      ->group(kGroup);
  app.add_option("--max-batch", flags.max_batch, "Requests that are computed at once")
      ->check(InRange(1, 4096))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--max-queue", flags.max_queue, "Requests that wait; others get 429")
      ->check(InRange(1, 1 << 20))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option(
         "--max-tokens", flags.max_tokens,
         "Most tokens of one answer, also of requests that do not say; -1: until the context "
         "is full")
      ->check(InRange(int64_t{-1}, int64_t{1} << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--context-length,--max-context", flags.context_length,
                 "Tokens of prompt and answer; 0: what the model was made for")
      ->check(InRange(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--kv-tokens", flags.kv_tokens,
                 "Tokens of all requests together in the KV cache; 0: one context")
      ->check(InRange(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--prefill-chunk", flags.prefill_chunk, "Prompt tokens per step (same answers)")
      ->check(InRange(1, 1 << 16))
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--no-prefix-cache", flags.no_prefix_cache,
               "Compute every prompt from its first token")
      ->group(kGroup);
  app.add_option("--chat-template-args", flags.template_args,
                 "Variables of the chat template as JSON: '{\"enable_thinking\": false}'; those of "
                 "a request (chat_template_kwargs) win")
      ->type_name("JSON")
      ->group(kGroup);
  app.add_flag("--tool-syntax-greedy", flags.greedy_calls,
               "While an answer writes the syntax of a tool call, take the most probable token "
               "whatever the temperature; texts in arguments are sampled")
      ->group(kGroup);
  app.add_option("--tool-syntax-tags", flags.greedy_tags,
                 "What opens and closes calls of JSON for it; default: as the chat template has it")
      ->type_name("OPEN,CLOSE")
      ->group(kGroup);
  app.add_option(
         "--embedding-pooling", flags.embedding_pooling,
         "What /v1/embeddings makes of a text: the hidden state of its last token, of its "
         "first one (cls), or the mean of all; default: what the checkpoint says, else last")
      ->check(CLI::IsMember({"mean", "last", "cls"}))
      ->group(kGroup);
  app.add_flag("--stream-usage", flags.stream_usage,
               "Usage at the end of OpenAI streams also when it was not asked for")
      ->group(kGroup);
}

void AddModelsFlags(CLI::App& app, ServeFlags& flags) {
  constexpr const char* kGroup = "Several models";
  app.add_option("--model", flags.models,
                 "Checkpoint: a folder in Hugging Face layout, a .gguf file, or the ORG/NAME of a "
                 "repository that `turboquant pull` has downloaded; repeated: several models, of "
                 "which a request names one. NAME[,NAME...]=PATH gives names for clients")
      ->required()
      ->allow_extra_args(false)
      ->type_name("[NAME=]PATH")
      ->check(ServeModelArgument(), "");
  app.add_flag("--load-on-demand", flags.load_on_demand,
               "Load no model before a request asks for it; default: the first one at the start")
      ->group(kGroup);
  app.add_option("--max-loaded-models", flags.max_loaded,
                 "Models in memory at once; 0: as many as --memory-gb has room for (without it: "
                 "the memory that is free at the start)")
      ->check(InRange(0, 1024))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--idle-unload", flags.idle_unload,
                 "Seconds without a request after which a model is unloaded; 0: never")
      ->check(InRange(0.0, 1e7))
      ->capture_default_str()
      ->group(kGroup);
}

Status AddKeys(std::string_view text, char separator, std::string_view where,
               std::vector<std::string>& keys) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view key = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.remove_suffix(1);
    if (!key.empty()) keys.emplace_back(key);
  }
  if (keys.empty()) return InvalidArgument(fmt::format("{}: expected a key, found none", where));
  return Status::Ok();
}

Status ReadGreedyCalls(const ServeFlags& flags, server::ServiceOptions& options) {
  options.greedy_calls = flags.greedy_calls;
  const std::string& tags = flags.greedy_tags;
  if (tags.empty()) return Status::Ok();
  if (!flags.greedy_calls) {
    return InvalidArgument("--tool-syntax-tags: expected --tool-syntax-greedy too, found none");
  }
  const size_t comma = tags.find(',');
  const bool two = comma != std::string::npos && comma > 0 && comma + 1 < tags.size() &&
                   tags.find(',', comma + 1) == std::string::npos;
  if (!two) {
    return InvalidArgument(
        fmt::format("--tool-syntax-tags: expected two tags as in <tool_call>,</tool_call>, found "
                    "{}",
                    tags));
  }
  options.greedy_tags = {tags.substr(0, comma), tags.substr(comma + 1)};
  return Status::Ok();
}

}  // namespace

void AddServeFlags(CLI::App& app, ServeFlags& flags) {
  AddModelsFlags(app, flags);
  AddConfigFlag(app);
  AddNetworkFlags(app, flags);
  AddServingFlags(app, flags);
  AddKvFlags(app, flags.kv);
  AddDiskCacheFlags(app, flags.disk_cache);
  app.add_option("--log-file", flags.log_file, "Append what happens to this file; \"-\": stderr")
      ->group("Logs");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str()
      ->group("Logs");
  // For tests of clients, so not in --help (docs/serve.md).
  app.add_option("--replay", flags.replay, "Say the answers of this file")->group("");
  AddCommonFlags(app, flags.common, Compute::kModel);
}

Result<std::vector<std::string>> ReadApiKeys(const ServeFlags& flags) {
  std::vector<std::string> keys;
  for (const std::string& key : flags.api_keys) {
    if (key.empty()) return InvalidArgument("--api-key: expected a key, found none");
    keys.push_back(key);
  }
  if (const char* variable = std::getenv(kKeyVariable); variable != nullptr) {
    TQ_RETURN_IF_ERROR(AddKeys(variable, ',', kKeyVariable, keys));
  }
  if (!flags.api_key_file.empty()) {
    TQ_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(flags.api_key_file, 1 << 20));
    TQ_RETURN_IF_ERROR(AddKeys(text, '\n', flags.api_key_file, keys));
  }
  return keys;
}

Result<EngineOptions> ServeEngineOptions(const ServeFlags& flags, const std::string& path) {
  EngineOptions options;
  options.max_context = flags.context_length;
  options.kv_tokens = flags.kv_tokens;
  options.max_sequences = flags.max_batch;
  options.max_queue = flags.max_queue;
  options.embeddings = true;
  options.prefill_chunk = flags.prefill_chunk;
  options.prefix_cache = !flags.no_prefix_cache;
  TQ_ASSIGN_OR_RETURN(options.disk_cache, MakeDiskCacheOptions(flags.disk_cache, path));
  if (!options.disk_cache.folder.empty() && flags.no_prefix_cache) {
    return InvalidArgument(
        "--disk-cache: expected the prefix cache, which it keeps over restarts, found "
        "--no-prefix-cache: leave one of them out");
  }
  return options;
}

server::HttpServerOptions ServeHttpOptions(const ServeFlags& flags) {
  server::HttpServerOptions options;
  options.host = flags.host;
  options.port = flags.port;
  options.unix_path = flags.unix_socket;
  options.threads = flags.http_threads;
  options.max_body_bytes = static_cast<size_t>(flags.max_body_mb) << 20;
  options.refuse = [](int status, std::string_view message) {
    const server::ApiError error{status, status >= 500 ? "server_error" : "invalid_request_error",
                                 "", "", std::string(message)};
    return server::ErrorResponse(server::ApiStyle::kOpenAi, error, "");
  };
  return options;
}

Result<server::ServiceOptions> ServeServiceOptions(const ServeFlags& flags) {
  server::ServiceOptions options;
  if (!flags.template_args.empty()) {
    auto json = ParseOrderedJson(flags.template_args, "--chat-template-args");
    if (!json.ok()) return InvalidArgument(json.status().message());
    if (!json->is_object()) {
      return InvalidArgument(
          fmt::format("--chat-template-args: expected a JSON object, found {}", json->type_name()));
    }
    options.template_variables = std::move(json).value();
  }
  TQ_RETURN_IF_ERROR(ReadGreedyCalls(flags, options));
  if (!flags.embedding_pooling.empty()) {
    options.embedding_pooling = ParsePooling(flags.embedding_pooling);
  }
  options.origins = flags.origins;
  options.rate_limit = flags.rate_limit;
  options.max_tokens = flags.max_tokens;
  options.timeout_seconds = flags.timeout;
  options.any_model_name = !flags.strict_model;
  options.stream_usage = flags.stream_usage;
  options.keepalive_interval = std::chrono::milliseconds(
      flags.keepalive ? static_cast<int64_t>(flags.keepalive_interval * 1000) : 0);
  return options;
}

}  // namespace tq
