#include "server/service.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/call.h"
#include "server/ids.h"
#include "server/router.h"
#include "server/transport/text.h"

namespace tq::server {
namespace {

constexpr std::string_view kAnthropicPath = "/v1/messages";

// Whole texts are compared whatever they hold, so that the time says nothing about a key.
bool EqualsInConstantTime(std::string_view secret, std::string_view given) {
  size_t difference = secret.size() ^ given.size();
  for (size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<size_t>(static_cast<unsigned char>(expected ^ given[i]));
  }
  return difference == 0;
}

ApiStyle StyleOf(const HttpRequest& request) {
  const bool anthropic =
      request.path.starts_with(kAnthropicPath) || !request.Find("anthropic-version").empty();
  return anthropic ? ApiStyle::kAnthropic : ApiStyle::kOpenAi;
}

bool NeedsNoKey(std::string_view path) {
  return path == "/health" || path == "/api/hello" || path == "/" || path == "/page/{file}";
}

bool WantsWebSocket(const HttpRequest& request) {
  return EqualsIgnoringCase(request.Find("upgrade"), "websocket");
}

Status CheckNames(const std::vector<ModelEntry>& models) {
  std::set<std::string> seen;
  for (const ModelEntry& entry : models) {
    std::set<std::string> names(entry.card.aliases.begin(), entry.card.aliases.end());
    names.insert(entry.card.name);
    for (const std::string& name : names) {
      if (seen.insert(name).second) continue;
      return InvalidArgument(fmt::format(
          "--model: expected models with names of their own, found two that are called \"{}\": "
          "write --model NAME=PATH",
          name));
    }
  }
  return Status::Ok();
}

}  // namespace

Service::Service(ServiceOptions options, ServerLog log, bool several_models)
    : options_(std::move(options)),
      log_(std::move(log)),
      metrics_(several_models),
      limiter_(options_.rate_limit, std::max<size_t>(1, options_.api_keys.size())),
      responses_(options_.max_responses),
      created_(std::time(nullptr)) {}

Result<std::unique_ptr<Service>> Service::Create(std::vector<ModelEntry> models, PoolOptions pool,
                                                 ServiceOptions options, ServerLog log) {
  TQ_RETURN_IF_ERROR(CheckNames(models));
  std::unique_ptr<Service> service(
      new Service(std::move(options), std::move(log), models.size() > 1));
  std::vector<PooledModel> pooled;
  for (ModelEntry& entry : models) {
    pooled.push_back({entry.card.name, entry.card.memory_bytes, std::move(entry.load)});
    service->models_.push_back(std::make_unique<ServedModel>(
        std::move(entry.card), service->models_.size(), service->options_.max_turns));
  }
  pool.on_event = [self = service.get()](const PoolEvent& event) { self->Note(event); };
  TQ_ASSIGN_OR_RETURN(service->pool_, ModelPool::Create(std::move(pooled), std::move(pool)));
  return service;
}

void Service::Note(const PoolEvent& event) const {
  const ModelCard& card = models_[event.model]->card();
  const std::string seconds = fmt::format("{:.3f}", event.seconds);
  switch (event.kind) {
    case PoolEvent::Kind::kLoad:
      return log_.Write(
          LogLevel::kInfo, "load",
          {{"model", card.name}, {"memory_bytes", fmt::to_string(card.memory_bytes)}});
    case PoolEvent::Kind::kLoaded:
      return log_.Write(LogLevel::kInfo, "loaded", {{"model", card.name}, {"seconds", seconds}});
    case PoolEvent::Kind::kLoadFailed:
      return log_.Write(LogLevel::kError, "load failed",
                        {{"model", card.name}, {"why", event.status.message()}});
    case PoolEvent::Kind::kUnloaded:
      return log_.Write(
          LogLevel::kInfo, "unloaded",
          {{"model", card.name}, {"for", std::string(event.why)}, {"seconds", seconds}});
  }
}

void Service::SetConnectionCounter(std::function<size_t()> counter) {
  const std::lock_guard lock(mutex_);
  connections_ = std::move(counter);
}

size_t Service::num_connections() const {
  const std::lock_guard lock(mutex_);
  return connections_ ? connections_() : 0;
}

std::optional<size_t> Service::KeyOf(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return 0;
  constexpr std::string_view kBearer = "bearer ";
  std::string_view bearer = request.Find("authorization");
  const bool is_bearer = bearer.size() > kBearer.size() &&
                         EqualsIgnoringCase(bearer.substr(0, kBearer.size()), kBearer);
  bearer.remove_prefix(is_bearer ? kBearer.size() : bearer.size());
  const std::string_view other = request.Find("x-api-key");
  std::optional<size_t> found;
  for (size_t i = 0; i < options_.api_keys.size(); ++i) {
    const std::string& key = options_.api_keys[i];
    const bool in_bearer = EqualsInConstantTime(key, bearer);
    const bool in_other = EqualsInConstantTime(key, other);
    if (in_bearer || in_other) found = i;
  }
  return found;
}

void Service::AddOrigin(Exchange& exchange) const {
  const std::string_view origin = exchange.request().Find("origin");
  if (origin.empty() || options_.origins.empty()) return;
  const bool any =
      std::find(options_.origins.begin(), options_.origins.end(), "*") != options_.origins.end();
  const bool named =
      std::find(options_.origins.begin(), options_.origins.end(), origin) != options_.origins.end();
  if (!any && !named) return;
  exchange.AddHeader("Access-Control-Allow-Origin", any ? "*" : std::string(origin));
  exchange.AddHeader("Vary", "Origin");
  if (exchange.request().method != "OPTIONS") return;
  const std::string_view headers = exchange.request().Find("access-control-request-headers");
  exchange.AddHeader("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  exchange.AddHeader("Access-Control-Allow-Headers", headers.empty() ? "*" : std::string(headers));
  exchange.AddHeader("Access-Control-Max-Age", "600");
}

void Service::Handle(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  Call call{.service = *this, .exchange = exchange, .style = StyleOf(request)};
  call.request_id = NewId("req_");
  exchange->AddHeader("request-id", call.request_id);
  exchange->AddHeader("x-request-id", call.request_id);
  AddOrigin(*exchange);
  if (request.method == "OPTIONS") {
    call.path = "*";
    return call.Reply(HttpResponse{.status = 204});
  }
  Route route = FindRoute(request.method, request.path);
  call.path = route.endpoint != nullptr ? route.endpoint->path : "other";
  call.arguments = std::move(route.arguments);
  const bool open = route.endpoint != nullptr && NeedsNoKey(route.endpoint->path);
  const std::optional<size_t> key = KeyOf(request);
  if (!open && !key) {
    return call.Fail(ApiError{401, "invalid_request_error", "invalid_api_key", "",
                              "expected one of the server's API keys as `Authorization: Bearer` or "
                              "`x-api-key`, found none that is valid"});
  }
  if (WantsWebSocket(request)) {
    exchange->AddHeader("Upgrade", "HTTP/1.1");
    return call.Fail(ApiError{426, "invalid_request_error", "upgrade_required", "",
                              "WebSockets are not served: use POST with \"stream\": true"});
  }
  if (route.endpoint != nullptr && request.method == "POST") {
    const int seconds = limiter_.Take(key.value_or(0), RateLimiter::Clock::now());
    if (seconds > 0) return call.Fail(RateLimitError(options_.rate_limit, seconds));
  }
  if (route.endpoint != nullptr) return route.endpoint->handle(call);
  if (!route.allowed.empty()) {
    exchange->AddHeader("Allow", route.allowed);
    return call.Fail(ApiError{
        405, "invalid_request_error", "method_not_allowed", "",
        fmt::format("{}: expected {}, found {}", request.path, route.allowed, request.method)});
  }
  call.Fail(NotFoundError(
      fmt::format("{} {}: no such endpoint; docs/api.md lists them", request.method, request.path),
      "unknown_url"));
}

Result<ServedModel*> Service::FindModel(std::string_view asked) const {
  if (asked.empty()) return models_.front().get();
  for (const auto& model : models_) {
    if (model->HasName(asked)) return model.get();
  }
  if (!has_several() && options_.any_model_name) return models_.front().get();
  return NoModel(asked);
}

Status Service::NoModel(std::string_view asked) const {
  std::string names;
  for (const auto& model : models_) {
    fmt::format_to(std::back_inserter(names), "{}\"{}\"", names.empty() ? "" : ", ", model->name());
  }
  return NotFound(fmt::format("model: expected {}{}, found \"{}\"", has_several() ? "one of " : "",
                              names, asked.substr(0, 100)));
}

}  // namespace tq::server
