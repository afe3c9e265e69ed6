#include "server/call.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/sse.h"

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

}  // namespace tq::server
