// GET / and /page/{file}: the chat page for browsers. It is what any other client could be: all
// that it knows comes from the API.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/page/page_files.h"
#include "server/router.h"

namespace tq::server {
namespace {

// Everything comes from this server, and a text can never become markup or script, whatever a model
// says.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

const char* ContentTypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "image/svg+xml";
}

// If-None-Match: a list of quoted tags, perhaps weak ones, or "*".
bool HasTag(std::string_view list, std::string_view quoted) {
  return list == "*" || list.find(quoted) != std::string_view::npos;
}

void ReplyFile(const Call& call, const PageFile& file) {
  const std::string tag = fmt::format("\"{}\"", file.tag);
  HttpResponse response{.content_type = ContentTypeOf(file.name)};
  // Kept, but asked for each time: a new program has a new page at once.
  response.headers = {{"ETag", tag},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", kContentPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}};
  if (HasTag(call.request().Find("if-none-match"), tag)) {
    response.status = 304;
  } else {
    response.body = file.body;
  }
  call.Reply(std::move(response));
}

void ReplyNamed(const Call& call, std::string_view name) {
  const auto files = PageFiles();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [name](const PageFile& other) { return other.name == name; });
  if (file != files.end()) return ReplyFile(call, *file);
  call.Fail(
      NotFoundError(fmt::format("{}: no such part of the page", call.request().path.substr(0, 100)),
                    "unknown_url"));
}

}  // namespace

void Root(const Call& call) {
  call.exchange->AddHeader("Vary", "Accept");
  // Browsers name HTML, other clients do not.
  if (call.request().Find("accept").find("text/html") != std::string_view::npos) {
    return ReplyNamed(call, "index.html");
  }
  call.Reply({{"status", "ok"}});
}

void PagePart(const Call& call) { ReplyNamed(call, call.arguments.front()); }

}  // namespace tq::server
