// GET /v1/models, /v1/models/{id}, /health and the first questions of clients.
#include <ctime>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/router.h"

namespace tq::server {
namespace {

// In one object what the OpenAI and the Anthropic API say about a model: clients of both read it.
OrderedJson ModelJson(const Service& service, const ServedModel& model, const std::string& name,
                      const std::vector<PoolStats>& stats) {
  char date[32];
  std::tm parts{};
  const auto created = static_cast<std::time_t>(service.created());
  ::gmtime_r(&created, &parts);
  const size_t size = std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {{"id", name},
          {"object", "model"},
          {"type", "model"},
          {"created", service.created()},
          {"created_at", std::string(date, size)},
          {"display_name", name},
          {"owned_by", "turboquant"},
          {"max_model_len", model.max_context()},
          {"context_length", model.max_context()},
          {"status", {{"value", ModelStateName(stats[model.index()].state)}}}};
}

}  // namespace

void ListModels(const Call& call) {
  OrderedJson data = OrderedJson::array();
  const std::vector<PoolStats> stats = call.service.pool().Stats();
  for (const auto& model : call.service.models()) {
    data.push_back(ModelJson(call.service, *model, model->name(), stats));
    for (const std::string& alias : model->card().aliases) {
      data.push_back(ModelJson(call.service, *model, alias, stats));
    }
  }
  const OrderedJson first = data.front()["id"];
  const OrderedJson last = data.back()["id"];
  call.Reply({{"object", "list"},
              {"data", std::move(data)},
              {"has_more", false},
              {"first_id", first},
              {"last_id", last}});
}

void GetModel(const Call& call) {
  const std::string& asked = call.arguments.front();
  for (const auto& model : call.service.models()) {
    if (!model->HasName(asked)) continue;
    return call.Reply(ModelJson(call.service, *model, asked, call.service.pool().Stats()));
  }
  call.Fail(NotFoundError(call.service.NoModel(asked).message(), "model_not_found"));
}

void Health(const Call& call) {
  int64_t running = 0;
  int64_t waiting = 0;
  OrderedJson loaded = OrderedJson::array();
  const std::vector<PoolStats> stats = call.service.pool().Stats();
  for (const auto& model : call.service.models()) {
    const PoolStats& one = stats[model->index()];
    waiting += one.waiting;
    if (!one.engine) continue;
    running += one.engine->running;
    waiting += one.engine->waiting;
    loaded.push_back(model->name());
  }
  call.Reply({{"status", "ok"},
              {"model", call.service.first_model().name()},
              {"running", running},
              {"waiting", waiting},
              {"loaded", std::move(loaded)}});
}

void Hello(const Call& call) { call.Reply({{"status", "ok"}}); }

}  // namespace tq::server
