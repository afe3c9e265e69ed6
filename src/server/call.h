// Call: one request on its way through the endpoints: who asked, and in which API's words to
// answer.
#pragma once

#include <memory>
#include <optional>
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
  // Of a call that OpenModelCall has made: which model the request is to, and its name in the
  // answer, as the request has it.
  ServedModel* model = nullptr;
  std::string model_name = {};

  const HttpRequest& request() const { return exchange->request(); }
  void Reply(const OrderedJson& body) const;
  void Reply(HttpResponse response) const;
  // The head of a stream of events.
  void StartEvents() const;
  void Fail(const ApiError& error) const;
  void Fail(const Status& status) const { Fail(ErrorOf(status)); }
};

// A request to one of the models: its JSON body, and the call with the model that it names.
struct ModelCall {
  Call call;
  OrderedJson body;
};
// Nothing: the body is no JSON object, or there is no such model; the client has been told.
std::optional<ModelCall> OpenModelCall(const Call& call);
// The model that "?model=" names. Null: as above.
ServedModel* ModelOfQuery(const Call& call);

}  // namespace tq::server
