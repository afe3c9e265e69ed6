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

using Labels = prometheus::Labels;
using Counters = prometheus::Family<prometheus::Counter>;
using Histograms = prometheus::Family<prometheus::Histogram>;

Counters& AddCounters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Histograms& AddHistograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

void SetGauge(prometheus::Registry& registry, const char* name, const char* help,
              const Labels& labels, int64_t value) {
  prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels).Set(
      static_cast<double>(value));
}

// What the process could have at most.
int64_t SystemBytes() {
  const SystemMemory memory = ReadSystemMemory();
  return std::max<int64_t>(memory.container_limit >= 0 ? memory.container_limit : memory.total, 0);
}

// Those of an engine that is there.
void AddEngine(prometheus::Registry& now, const Labels& labels, const EngineStats& engine) {
  const auto add = [&](const char* name, const char* help, int64_t value) {
    SetGauge(now, name, help, labels, value);
  };
  add("turboquant_requests_running", "Requests that are being computed", engine.running);
  add("turboquant_steps", "Steps of the engine so far", engine.steps);
  add("turboquant_kv_pages", "Pages of the KV cache", engine.total_pages);
  add("turboquant_kv_pages_free", "Pages that a request can have", engine.free_pages);
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
}

void AddPooled(prometheus::Registry& now, const ModelMetrics& model) {
  const Labels labels = {{"model", model.name}};
  const PoolStats& stats = model.stats;
  const auto count = [&](const char* name, const char* help, double value) {
    AddCounters(now, name, help).Add(labels).Increment(value);
  };
  SetGauge(now, "turboquant_model_loaded", "Whether the model is in memory", labels,
           stats.state == ModelState::kLoaded);
  SetGauge(now, "turboquant_model_memory_bytes", "What the model takes when it is loaded", labels,
           model.memory_bytes);
  count("turboquant_model_loads_total", "Loads of the model", static_cast<double>(stats.loads));
  count("turboquant_model_load_failures_total", "Loads that failed",
        static_cast<double>(stats.failed_loads));
  count("turboquant_model_unloads_total", "Unloads of the model",
        static_cast<double>(stats.unloads));
  count("turboquant_model_load_seconds_total", "Seconds of all loads", stats.load_seconds);
}

}  // namespace

struct ServerMetrics::Impl {
  explicit Impl(bool several) : several_models(several) {}
  // Of what one model does.
  Labels LabelsOf(const std::string& model) const {
    return several_models ? Labels{{"model", model}} : Labels{};
  }

  const bool several_models;
  prometheus::Registry registry;
  Counters& requests =
      AddCounters(registry, "turboquant_http_requests_total", "Requests by path and status");
  Counters& answers =
      AddCounters(registry, "turboquant_answers_total", "Generations that ended, by how");
  Counters& prompt_tokens =
      AddCounters(registry, "turboquant_prompt_tokens_total", "Tokens of prompts");
  Counters& cached_tokens = AddCounters(registry, "turboquant_prompt_tokens_cached_total",
                                        "Tokens of prompts that the prefix cache had");
  Counters& generated_tokens =
      AddCounters(registry, "turboquant_generated_tokens_total", "Tokens of answers");
  Histograms& queue_seconds = AddHistograms(registry, "turboquant_queue_seconds",
                                            "From a request to the first step of its prompt");
  Histograms& first_token_seconds = AddHistograms(
      registry, "turboquant_time_to_first_token_seconds", "From a request to its first token");
  Histograms& token_seconds = AddHistograms(registry, "turboquant_time_per_token_seconds",
                                            "From a token to the next, the mean of an answer");
};

ServerMetrics::ServerMetrics(bool several_models) : impl_(std::make_unique<Impl>(several_models)) {
  if (several_models) return;
  // They are there before the first answer.
  for (Counters* counters :
       {&impl_->prompt_tokens, &impl_->cached_tokens, &impl_->generated_tokens}) {
    counters->Add({});
  }
  for (Histograms* histograms :
       {&impl_->queue_seconds, &impl_->first_token_seconds, &impl_->token_seconds}) {
    histograms->Add({}, Seconds());
  }
}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::CountRequest(std::string_view path, int status) {
  impl_->requests.Add({{"path", std::string(path)}, {"status", fmt::to_string(status)}})
      .Increment();
}

void ServerMetrics::CountAnswer(const std::string& model, std::string_view outcome,
                                const GenerateStats& stats) {
  const Labels labels = impl_->LabelsOf(model);
  Labels by_outcome = labels;
  by_outcome.emplace("outcome", outcome);
  impl_->answers.Add(by_outcome).Increment();
  impl_->prompt_tokens.Add(labels).Increment(static_cast<double>(stats.prompt_tokens));
  impl_->cached_tokens.Add(labels).Increment(static_cast<double>(stats.cached_tokens));
  impl_->generated_tokens.Add(labels).Increment(static_cast<double>(stats.generated_tokens));
  if (stats.generated_tokens == 0) return;
  impl_->queue_seconds.Add(labels, Seconds()).Observe(stats.queue_seconds);
  impl_->first_token_seconds.Add(labels, Seconds())
      .Observe(stats.queue_seconds + stats.prefill_seconds);
  if (stats.generated_tokens > 1) {
    impl_->token_seconds.Add(labels, Seconds())
        .Observe(stats.decode_seconds / static_cast<double>(stats.generated_tokens - 1));
  }
}

std::string ServerMetrics::Text(std::span<const ModelMetrics> models,
                                size_t num_connections) const {
  prometheus::Registry now;
  const auto add = [&now](const char* name, const char* help, int64_t value) {
    SetGauge(now, name, help, {}, value);
  };
  add("turboquant_connections", "Open connections", static_cast<int64_t>(num_connections));
  add("turboquant_kv_page_tokens", "Tokens that a page has room for", kPageTokens);
  add("process_resident_memory_bytes", "Memory of the process", ResidentBytes());
  add("turboquant_system_memory_bytes", "Memory of the machine, or of the process's control group",
      SystemBytes());
  for (const ModelMetrics& model : models) {
    const Labels labels = impl_->LabelsOf(model.name);
    int64_t waiting = model.stats.waiting;
    if (model.stats.engine) {
      waiting += model.stats.engine->waiting;
      AddEngine(now, labels, *model.stats.engine);
    }
    SetGauge(now, "turboquant_requests_waiting", "Requests in the queue", labels, waiting);
    SetGauge(now, "turboquant_kv_bytes_per_token", "Bytes of the KV cache for a token", labels,
             model.kv_bytes_per_token);
    AddPooled(now, model);
  }
  const prometheus::TextSerializer serializer;
  return serializer.Serialize(impl_->registry.Collect()) + serializer.Serialize(now.Collect());
}

}  // namespace tq::server
