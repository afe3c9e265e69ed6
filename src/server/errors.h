// Failures as the three APIs show them. The only map from a Status to HTTP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "server/transport/http.h"

namespace tq::server {

enum class ApiStyle : uint8_t { kOpenAi, kAnthropic };

struct ApiError {
  int status = 400;
  std::string type;     // in words of the OpenAI API; Anthropic's follow from the status
  std::string code;     // "" -> null
  std::string param;    // the field that is wrong; "" -> null
  std::string message;  // one line
  int retry_after = 1;  // seconds, of 429 and 503
};

// kInvalidArgument and kCorrupt 400, kNotFound 404, kBusy 429, kOutOfMemory 503, kUnsupported 501,
// others 500. The field is read from the front of the message ("messages[0].role: expected ...").
ApiError ErrorOf(const Status& status);
ApiError NotFoundError(std::string message, std::string code);
// Both numbers, in the words that clients of each API look for.
ApiError ContextLengthError(ApiStyle style, int64_t max_context, int64_t prompt_tokens);
ApiError TimeoutError(double seconds);
// An answer that ends because the server does.
ApiError StoppingError();
// More than so many requests a minute; another one may come in so many seconds.
ApiError RateLimitError(int per_minute, int seconds);
// An error that ends a stream or a stored answer: {"message", "type", "param", "code"} or
// Anthropic's.
OrderedJson ErrorObject(ApiStyle style, const ApiError& error);
// The whole body of an answer, or the data of an "error" event.
OrderedJson ErrorBody(ApiStyle style, const ApiError& error, std::string_view request_id);
// Retry-After comes with 429 and 503: some clients give up without it.
HttpResponse ErrorResponse(ApiStyle style, const ApiError& error, std::string_view request_id);

// Compact JSON; text that is no UTF-8 becomes U+FFFD.
std::string Dump(const OrderedJson& json);

}  // namespace tq::server
