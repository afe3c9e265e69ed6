#include "server/call.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/fields.h"
#include "server/sse.h"
#include "server/transport/text.h"

namespace tq::server {

void Call::Reply(const OrderedJson& body) const { Reply(HttpResponse{.body = Dump(body)}); }

void Call::Reply(HttpResponse response) const {
  service.metrics().CountRequest(path, response.status);
  service.log().Write(LogLevel::kInfo, "request",
                      {{"id", request_id},
                       {"method", request().method},
                       {"path", request().path},
                       {"status", fmt::to_string(response.status)}});
  exchange->Respond(std::move(response));
}

void Call::StartEvents() const {
  service.metrics().CountRequest(path, 200);
  service.log().Write(LogLevel::kInfo, "stream",
                      {{"id", request_id}, {"method", request().method}, {"path", request().path}});
  exchange->StartStream(SseHead());
}

void Call::Fail(const ApiError& error) const {
  service.metrics().CountRequest(path, error.status);
  service.log().Write(error.status >= 500 ? LogLevel::kError : LogLevel::kWarning, "refused",
                      {{"id", request_id},
                       {"method", request().method},
                       {"path", request().path},
                       {"status", fmt::to_string(error.status)},
                       {"why", error.message}});
  exchange->Respond(ErrorResponse(style, error, request_id));
}

namespace {

// Null: there is no such model, and the client has been told.
ServedModel* FindOrFail(const Call& call, const std::string& name) {
  const Result<ServedModel*> found = call.service.FindModel(name);
  if (found.ok()) return *found;
  call.Fail(NotFoundError(found.status().message(), "model_not_found"));
  return nullptr;
}

}  // namespace

std::optional<ModelCall> OpenModelCall(const Call& call) {
  Result<OrderedJson> body = ParseBody(call.request().body);
  if (!body.ok()) {
    call.Fail(body.status());
    return std::nullopt;
  }
  const Result<std::string> name = RequestNode(*body, "")["model"].OptionalText();
  if (!name.ok()) {
    call.Fail(name.status());
    return std::nullopt;
  }
  ServedModel* model = FindOrFail(call, *name);
  if (model == nullptr) return std::nullopt;
  ModelCall opened{call, std::move(body).value()};
  opened.call.model = model;
  opened.call.model_name = name->empty() ? model->name() : *name;
  return opened;
}

ServedModel* ModelOfQuery(const Call& call) {
  return FindOrFail(call, QueryValue(call.request().query, "model"));
}

}  // namespace tq::server
