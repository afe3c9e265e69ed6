// GET /v1/models, /v1/models/{id}, /health and the first questions of clients.
#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/router.h"

namespace tq::server {
namespace {

// In one object what the OpenAI and the Anthropic API say about a model: clients of both read it.
OrderedJson ModelJson(const Service& service, const std::string& name) {
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
          {"max_model_len", service.max_context()},
          {"context_length", service.max_context()}};
}

std::vector<std::string> Names(const Service& service) {
  std::vector<std::string> names{service.model().name};
  names.insert(names.end(), service.model().aliases.begin(), service.model().aliases.end());
  return names;
}

}  // namespace

void ListModels(const Call& call) {
  OrderedJson data = OrderedJson::array();
  const std::vector<std::string> names = Names(call.service);
  for (const std::string& name : names) data.push_back(ModelJson(call.service, name));
  call.Reply({{"object", "list"},
              {"data", std::move(data)},
              {"has_more", false},
              {"first_id", names.front()},
              {"last_id", names.back()}});
}

void GetModel(const Call& call) {
  const std::string& asked = call.arguments.front();
  const std::vector<std::string> names = Names(call.service);
  if (std::find(names.begin(), names.end(), asked) == names.end()) {
    return call.Fail(NotFoundError(
        fmt::format("model: expected \"{}\", found \"{}\"", names.front(), asked.substr(0, 100)),
        "model_not_found"));
  }
  call.Reply(ModelJson(call.service, asked));
}

void Health(const Call& call) {
  const EngineStats stats = call.service.engine().stats();
  call.Reply({{"status", "ok"},
              {"model", call.service.model().name},
              {"running", stats.running},
              {"waiting", stats.waiting}});
}

void Hello(const Call& call) { call.Reply({{"status", "ok"}}); }

}  // namespace tq::server
