// Call: one request on its way through the endpoints: who asked, and in which API's words to
// answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/errors.h"
#include "server/service.h"
#include "server/transport/http.h"

namespace tq::server {

struct Call {
  Service& service;
  std::shared_ptr<Exchange> exchange;
  ApiStyle style = ApiStyle::kOpenAi;
  std::string request_id = {};
  std::string_view path = {};               // of the endpoint, for logs and metrics
  std::vector<std::string> arguments = {};  // of {names} in its path

  const HttpRequest& request() const { return exchange->request(); }
  void Reply(const OrderedJson& body) const;
  void Reply(HttpResponse response) const;
  // The head of a stream of events.
  void StartEvents() const;
  void Fail(const ApiError& error) const;
  void Fail(const Status& status) const { Fail(ErrorOf(status)); }
};

}  // namespace tq::server
