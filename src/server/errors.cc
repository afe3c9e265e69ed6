#include "server/errors.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tq::server {
namespace {

constexpr const char* kInvalidRequest = "invalid_request_error";
constexpr const char* kServerError = "server_error";

// "messages[0].role" of "messages[0].role: expected ...".
std::string FieldOf(std::string_view message) {
  const size_t end = message.find(": ");
  if (end == std::string_view::npos || end == 0) return "";
  const std::string_view field = message.substr(0, end);
  const bool is_path = std::all_of(field.begin(), field.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '[' ||
           c == ']';
  });
  return is_path && field != "request" && field != "body" ? std::string(field) : "";
}

std::string_view AnthropicType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : kInvalidRequest;
  }
}

OrderedJson TextOrNull(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

}  // namespace

ApiError ErrorOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kCorrupt:
      return {400, kInvalidRequest, "", FieldOf(status.message()), status.message()};
    case StatusCode::kNotFound:
      return {404, kInvalidRequest, "not_found", "", status.message()};
    case StatusCode::kUnsupported:
      return {501, kInvalidRequest, "not_implemented", FieldOf(status.message()), status.message()};
    case StatusCode::kBusy:
      return {429, "rate_limit_error", "server_busy", "", status.message()};
    case StatusCode::kOutOfMemory:
      return {503, kServerError, "out_of_memory", "", status.message()};
    default:
      return {500, kServerError, "server_error", "", status.message()};
  }
}

ApiError NotFoundError(std::string message, std::string code) {
  return {404, kInvalidRequest, std::move(code), "", std::move(message)};
}

ApiError ContextLengthError(ApiStyle style, int64_t max_context, int64_t prompt_tokens) {
  ApiError error{400, kInvalidRequest, "context_length_exceeded", "messages", ""};
  // One token of the context is for the answer.
  if (style == ApiStyle::kAnthropic) {
    error.message =
        fmt::format("prompt is too long: {} tokens > {} maximum", prompt_tokens, max_context - 1);
  } else {
    error.message = fmt::format(
        "This model's maximum context length is {} tokens. Your prompt has {} tokens, and the "
        "answer needs at least one; shorten the prompt.",
        max_context, prompt_tokens);
  }
  return error;
}

ApiError StoppingError() {
  return {503, kServerError, "server_shutdown", "", "the server is stopping"};
}

ApiError TimeoutError(double seconds) {
  return {504, kServerError, "timeout", "",
          fmt::format("the answer was not complete within {:g} seconds", seconds)};
}

ApiError RateLimitError(int per_minute, int seconds) {
  return {429,
          "rate_limit_error",
          "rate_limit_exceeded",
          "",
          fmt::format("expected at most {} requests a minute of one API key, found more; come back "
                      "in {} seconds",
                      per_minute, seconds),
          seconds};
}

OrderedJson ErrorObject(ApiStyle style, const ApiError& error) {
  if (style == ApiStyle::kAnthropic) {
    return {{"type", AnthropicType(error.status)}, {"message", error.message}};
  }
  return {{"message", error.message},
          {"type", error.type},
          {"param", TextOrNull(error.param)},
          {"code", TextOrNull(error.code)}};
}

OrderedJson ErrorBody(ApiStyle style, const ApiError& error, std::string_view request_id) {
  OrderedJson body;
  if (style == ApiStyle::kAnthropic) body["type"] = "error";
  body["error"] = ErrorObject(style, error);
  if (style == ApiStyle::kAnthropic) body["request_id"] = request_id;
  return body;
}

HttpResponse ErrorResponse(ApiStyle style, const ApiError& error, std::string_view request_id) {
  HttpResponse response;
  response.status = error.status;
  response.body = Dump(ErrorBody(style, error, request_id));
  if (error.status == 429 || error.status == 503) {
    response.headers.push_back({"Retry-After", fmt::to_string(error.retry_after)});
  }
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace tq::server
