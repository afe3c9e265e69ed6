// Server-sent events.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "server/errors.h"
#include "server/transport/http.h"

namespace tq::server {

inline HttpResponse SseHead() {
  return {.content_type = "text/event-stream; charset=utf-8",
          // Proxies are not to collect events.
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

inline std::string SseData(const OrderedJson& data) { return "data: " + Dump(data) + "\n\n"; }

inline std::string SseEvent(std::string_view name, const OrderedJson& data) {
  return "event: " + std::string(name) + "\n" + SseData(data);
}

}  // namespace tq::server
