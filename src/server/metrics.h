// ServerMetrics: counters and histograms in the text format of Prometheus. Thread: any.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/request.h"
#include "server/model_pool.h"

namespace tq::server {

struct ModelMetrics {
  std::string name;
  int64_t kv_bytes_per_token = 0;
  int64_t memory_bytes = 0;
  PoolStats stats = {};
};

class ServerMetrics {
 public:
  // several_models: what is said of a model has its name as a label.
  explicit ServerMetrics(bool several_models);
  ~ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  void CountRequest(std::string_view path, int status);
  // outcome: "stop", "length", "tool_calls", "cancelled" or "error".
  void CountAnswer(const std::string& model, std::string_view outcome, const GenerateStats& stats);
  // All of them, and the state of the models now.
  std::string Text(std::span<const ModelMetrics> models, size_t num_connections) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tq::server
