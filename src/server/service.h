// Service: what all requests share: the model, the settings, what is remembered between requests,
// logs and metrics. Thread: any, but for what says otherwise.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/text_assets.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"
#include "grammar/grammar_compiler.h"
#include "server/errors.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/rate_limiter.h"
#include "server/responses/response_store.h"
#include "server/transport/http.h"
#include "server/turn_store.h"

namespace tq::server {

// The model that answers. What it points to outlives the service.
struct ServedModel {
  Engine* engine = nullptr;
  const TextAssets* text = nullptr;
  std::string name = {};                  // as clients see it
  std::vector<std::string> aliases = {};  // more names for it
  int64_t vocab_size = 0;
  std::string path = {};     // of the checkpoint, for /props
  std::string backend = {};  // likewise
};

struct ServiceOptions {
  std::vector<std::string> api_keys = {};  // none: everybody may
  std::vector<std::string> origins = {};   // for browsers; "*": any
  int rate_limit = 0;          // POST requests a minute and key (without keys: of all); 0: no limit
  int64_t max_tokens = -1;     // most tokens of an answer; -1: until the context is full
  double timeout_seconds = 0;  // of one answer; 0: none
  bool any_model_name = true;  // whatever name a request has, the model answers
  bool stream_usage = false;   // usage in streams of chat whether asked for or not
  // Variables of the chat template; those of a request win.
  OrderedJson template_variables = OrderedJson::object();
  // Events of a stream while there is nothing to say; 0: none.
  std::chrono::milliseconds keepalive_interval{10'000};
  size_t max_responses = 256;  // of /v1/responses that are stored
  size_t max_turns = 4096;     // answers that are remembered, to repeat them as they were generated
};

class Service {
 public:
  Service(ServedModel model, ServiceOptions options, ServerLog log);

  // The handler of a server.
  void Handle(const std::shared_ptr<Exchange>& exchange);
  // For metrics: how many connections are open. The counter outlives the last request.
  void SetConnectionCounter(std::function<size_t()> counter);

  Engine& engine() const { return *model_.engine; }
  const TextAssets& text() const { return *model_.text; }
  const ServedModel& model() const { return model_; }
  const ServiceOptions& options() const { return options_; }
  const ServerLog& log() const { return log_; }
  // Made with the first request that needs it. Errors: what GrammarCompiler::Create says.
  Result<GrammarCompiler*> grammars();
  // One for calls, whose grammars have the marks of the syntax. The first syntax counts: a model
  // has one.
  Result<GrammarCompiler*> call_grammars(const OutputSyntax& syntax);
  ServerMetrics& metrics() { return metrics_; }
  TurnStore& turns() { return turns_; }
  ResponseStore& responses() { return responses_; }
  int64_t max_context() const { return model_.engine->options().max_context; }
  int64_t created() const { return created_; }  // seconds since 1970
  size_t num_connections() const;

  // The name that the answer has: the request's, "" becomes the model's. Errors: kNotFound.
  Result<std::string> AnswerName(const std::string& asked) const;

 private:
  // Which of the keys is in the request's headers, 0 when there are none; in constant time.
  std::optional<size_t> KeyOf(const HttpRequest& request) const;
  void AddOrigin(Exchange& exchange) const;

  ServedModel model_;
  ServiceOptions options_;
  ServerLog log_;
  ServerMetrics metrics_;
  RateLimiter limiter_;
  TurnStore turns_;
  ResponseStore responses_;
  std::mutex grammars_mutex_;
  std::unique_ptr<GrammarCompiler> grammars_;
  std::unique_ptr<GrammarCompiler> call_grammars_;
  int64_t created_;
  mutable std::mutex mutex_;  // guards connections_
  std::function<size_t()> connections_;
};

}  // namespace tq::server
