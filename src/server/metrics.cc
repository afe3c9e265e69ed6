#include "server/metrics.h"

#include <algorithm>

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "backend/step_plan.h"
#include "base/memory.h"

namespace tq::server {
namespace {

prometheus::Histogram::BucketBoundaries Seconds() {
  return {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
}

prometheus::Counter& AddCounter(prometheus::Registry& registry, const char* name,
                                const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Histogram& AddHistogram(prometheus::Registry& registry, const char* name,
                                    const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, Seconds());
}

// What the process could have at most.
int64_t SystemBytes() {
  const SystemMemory memory = ReadSystemMemory();
  return std::max<int64_t>(memory.container_limit >= 0 ? memory.container_limit : memory.total, 0);
}

}  // namespace

struct ServerMetrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("turboquant_http_requests_total")
                                                          .Help("Requests by path and status")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& answers = prometheus::BuildCounter()
                                                         .Name("turboquant_answers_total")
                                                         .Help("Generations that ended, by how")
                                                         .Register(registry);
  prometheus::Counter& prompt_tokens =
      AddCounter(registry, "turboquant_prompt_tokens_total", "Tokens of prompts");
  prometheus::Counter& cached_tokens = AddCounter(registry, "turboquant_prompt_tokens_cached_total",
                                                  "Tokens of prompts that the prefix cache had");
  prometheus::Counter& generated_tokens =
      AddCounter(registry, "turboquant_generated_tokens_total", "Tokens of answers");
  prometheus::Histogram& queue_seconds = AddHistogram(
      registry, "turboquant_queue_seconds", "From a request to the first step of its prompt");
  prometheus::Histogram& first_token_seconds = AddHistogram(
      registry, "turboquant_time_to_first_token_seconds", "From a request to its first token");
  prometheus::Histogram& token_seconds =
      AddHistogram(registry, "turboquant_time_per_token_seconds",
                   "From a token to the next, the mean of an answer");
};

ServerMetrics::ServerMetrics() : impl_(std::make_unique<Impl>()) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::CountRequest(std::string_view path, int status) {
  impl_->requests.Add({{"path", std::string(path)}, {"status", fmt::to_string(status)}})
      .Increment();
}

void ServerMetrics::CountAnswer(std::string_view outcome, const GenerateStats& stats) {
  impl_->answers.Add({{"outcome", std::string(outcome)}}).Increment();
  impl_->prompt_tokens.Increment(static_cast<double>(stats.prompt_tokens));
  impl_->cached_tokens.Increment(static_cast<double>(stats.cached_tokens));
  impl_->generated_tokens.Increment(static_cast<double>(stats.generated_tokens));
  if (stats.generated_tokens == 0) return;
  impl_->queue_seconds.Observe(stats.queue_seconds);
  impl_->first_token_seconds.Observe(stats.queue_seconds + stats.prefill_seconds);
  if (stats.generated_tokens > 1) {
    impl_->token_seconds.Observe(stats.decode_seconds /
                                 static_cast<double>(stats.generated_tokens - 1));
  }
}

std::string ServerMetrics::Text(const EngineStats& engine, size_t num_connections) const {
  prometheus::Registry now;
  const auto add = [&now](const char* name, const char* help, auto value) {
    prometheus::BuildGauge().Name(name).Help(help).Register(now).Add({}).Set(
        static_cast<double>(value));
  };
  add("turboquant_connections", "Open connections", num_connections);
  add("turboquant_requests_running", "Requests that are being computed", engine.running);
  add("turboquant_requests_waiting", "Requests in the queue", engine.waiting);
  add("turboquant_steps", "Steps of the engine so far", engine.steps);
  add("turboquant_kv_pages", "Pages of the KV cache", engine.total_pages);
  add("turboquant_kv_pages_free", "Pages that a request can have", engine.free_pages);
  add("turboquant_kv_page_tokens", "Tokens that a page has room for", kPageTokens);
  add("turboquant_kv_bytes_per_token", "Bytes of the KV cache for a token",
      engine.kv_bytes_per_token);
  add("turboquant_prefix_cache_pages", "Pages that the prefix cache knows", engine.cached_pages);
  add("turboquant_prefix_cache_states", "Recurrent states that it keeps", engine.checkpoints);
  add("turboquant_prefix_cache_hits", "Requests that found a prefix", engine.prefix_hits);
  add("turboquant_prefix_cache_evicted_pages", "Pages given up so far", engine.evicted_pages);
  add("turboquant_disk_cache_bytes", "Bytes in the folder of the disk cache", engine.disk_bytes);
  add("turboquant_disk_cache_hits", "Requests that went on from the disk", engine.disk_hits);
  add("turboquant_disk_cache_loaded_tokens", "Tokens taken from the disk so far",
      engine.disk_loaded_tokens);
  add("turboquant_disk_cache_write_errors", "Writes that failed", engine.disk_write_errors);
  add("turboquant_preemptions", "Requests that gave way so far", engine.preemptions);
  add("process_resident_memory_bytes", "Memory of the process", ResidentBytes());
  add("turboquant_system_memory_bytes", "Memory of the machine, or of the process's control group",
      SystemBytes());
  const prometheus::TextSerializer serializer;
  return serializer.Serialize(impl_->registry.Collect()) + serializer.Serialize(now.Collect());
}

}  // namespace tq::server
