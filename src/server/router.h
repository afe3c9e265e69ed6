// The table of endpoints, and which of them a request is for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/call.h"

namespace tq::server {

#define ENDPOINT(method, path, Handler, doc) void Handler(const Call& call);
#include "server/endpoint_list.inc"
#undef ENDPOINT

struct Endpoint {
  std::string_view method;
  std::string_view path;
  void (*handle)(const Call& call);
  std::string_view doc;
};

std::span<const Endpoint> Endpoints();

// HEAD is served by GET.
struct Route {
  const Endpoint* endpoint = nullptr;  // null: none
  std::vector<std::string> arguments;  // of {names}, decoded
  std::string allowed;  // "GET, POST": methods that the path has, when this one has none
};
Route FindRoute(std::string_view method, std::string_view path);

}  // namespace tq::server
