// Service: what all requests share: the models, the settings, what is remembered between requests,
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

#include "base/json.h"
#include "base/status.h"
#include "server/errors.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/model_pool.h"
#include "server/rate_limiter.h"
#include "server/responses/response_store.h"
#include "server/served_model.h"
#include "server/transport/http.h"

namespace tq::server {

struct ServiceOptions {
  std::vector<std::string> api_keys = {};  // none: everybody may
  std::vector<std::string> origins = {};   // for browsers; "*": any
  int rate_limit = 0;          // POST requests a minute and key (without keys: of all); 0: no limit
  int64_t max_tokens = -1;     // most tokens of an answer; -1: until the context is full
  double timeout_seconds = 0;  // of one answer; 0: none
  bool any_model_name = true;  // whatever name a request has, the model answers, if it is the only
  // While an answer writes the syntax of a call, its tokens are the most probable ones. Tags: what
  // opens and closes calls; none: what the chat template says.
  bool greedy_calls = false;
  std::vector<std::string> greedy_tags = {};
  // Of /v1/embeddings, in place of what the checkpoint says.
  std::optional<Pooling> embedding_pooling = {};
  bool stream_usage = false;  // usage in streams of chat whether asked for or not
  // Variables of the chat template; those of a request win.
  OrderedJson template_variables = OrderedJson::object();
  // Events of a stream while there is nothing to say; 0: none.
  std::chrono::milliseconds keepalive_interval{10'000};
  size_t max_responses = 256;  // of /v1/responses that are stored
  size_t max_turns = 4096;     // answers of a model, to repeat them as they were generated
};

class Service {
 public:
  // No model is loaded yet; pool().Get does it, or the first request. pool: on_event is the
  // service's. Errors: kInvalidArgument: a name that two models have; those of ModelPool::Create.
  // Requires: a model.
  static Result<std::unique_ptr<Service>> Create(std::vector<ModelEntry> models, PoolOptions pool,
                                                 ServiceOptions options, ServerLog log);

  // The handler of a server.
  void Handle(const std::shared_ptr<Exchange>& exchange);
  // For metrics: how many connections are open. The counter outlives the last request.
  void SetConnectionCounter(std::function<size_t()> counter);

  const std::vector<std::unique_ptr<ServedModel>>& models() const { return models_; }
  ServedModel& first_model() const { return *models_.front(); }
  bool has_several() const { return models_.size() > 1; }
  // Which a request means: "" is the first. Errors: NoModel.
  Result<ServedModel*> FindModel(std::string_view asked) const;
  // kNotFound, with the names that there are.
  Status NoModel(std::string_view asked) const;
  ModelPool& pool() { return *pool_; }
  const ServiceOptions& options() const { return options_; }
  const ServerLog& log() const { return log_; }
  ServerMetrics& metrics() { return metrics_; }
  ResponseStore& responses() { return responses_; }
  int64_t created() const { return created_; }  // seconds since 1970
  size_t num_connections() const;

 private:
  Service(ServiceOptions options, ServerLog log, bool several_models);
  // Of the pool, for the log.
  void Note(const PoolEvent& event) const;
  // Which of the keys is in the request's headers, 0 when there are none; in constant time.
  std::optional<size_t> KeyOf(const HttpRequest& request) const;
  void AddOrigin(Exchange& exchange) const;

  ServiceOptions options_;
  ServerLog log_;
  ServerMetrics metrics_;
  RateLimiter limiter_;
  ResponseStore responses_;
  int64_t created_;
  mutable std::mutex mutex_;  // guards connections_
  std::function<size_t()> connections_;
  std::vector<std::unique_ptr<ServedModel>> models_;
  std::unique_ptr<ModelPool> pool_;  // last: its thread uses the rest
};

}  // namespace tq::server
