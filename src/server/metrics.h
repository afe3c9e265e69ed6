// ServerMetrics: counters and histograms in the text format of Prometheus. Thread: any.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engine/request.h"

namespace tq::server {

class ServerMetrics {
 public:
  ServerMetrics();
  ~ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  void CountRequest(std::string_view path, int status);
  // outcome: "stop", "length", "tool_calls", "cancelled" or "error".
  void CountAnswer(std::string_view outcome, const GenerateStats& stats);
  // All of them, and the engine's state now.
  std::string Text(const EngineStats& engine, size_t num_connections) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tq::server
