#include "server/transport/http.h"

#include "server/transport/text.h"

namespace tq::server {

std::string_view HttpRequest::Find(std::string_view name) const {
  for (const Header& header : headers) {
    if (EqualsIgnoringCase(header.name, name)) return header.value;
  }
  return {};
}

}  // namespace tq::server
