#include "server/router.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/transport/text.h"

namespace tq::server {
namespace {

constexpr Endpoint kEndpoints[] = {
#define ENDPOINT(method, path, Handler, doc) {method, path, Handler, doc},
#include "server/endpoint_list.inc"
#undef ENDPOINT
};

// The part up to the next '/', which is taken off `rest` together with it.
std::string_view TakePart(std::string_view& rest) {
  const size_t end = std::min(rest.find('/'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// The arguments, if the path is one of the pattern.
std::optional<std::vector<std::string>> Match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> arguments;
  pattern.remove_prefix(1);
  path.remove_prefix(1);
  while (!pattern.empty()) {
    const std::string_view wanted = TakePart(pattern);
    if (path.empty()) return std::nullopt;
    if (wanted.ends_with("*}")) {
      arguments.push_back(PercentDecode(path));
      return arguments;
    }
    const std::string_view found = TakePart(path);
    if (wanted.starts_with('{') && !found.empty()) {
      arguments.push_back(PercentDecode(found));
    } else if (wanted != found) {
      return std::nullopt;
    }
  }
  if (!path.empty()) return std::nullopt;
  return arguments;
}

}  // namespace

std::span<const Endpoint> Endpoints() { return kEndpoints; }

Route FindRoute(std::string_view method, std::string_view path) {
  Route route;
  if (!path.starts_with('/')) return route;
  if (method == "HEAD") method = "GET";
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  for (const Endpoint& endpoint : kEndpoints) {
    auto arguments = Match(endpoint.path, path);
    if (!arguments) continue;
    if (endpoint.method == method) return {&endpoint, std::move(*arguments), ""};
    if (!route.allowed.empty()) route.allowed += ", ";
    route.allowed += endpoint.method;
  }
  return route;
}

}  // namespace tq::server
