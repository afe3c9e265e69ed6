// The chat page: who gets it, how it is kept, what it may do.
#include <set>

#include "server/page/page_files.h"
#include "server/server_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

constexpr const char* kBrowser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8";

TEST(Page, BrowsersGetThePageOthersWhatTheyGotBefore) {
  TestServer server({.service = {.api_keys = {"secret"}}});
  const HttpReply page = server.Get("/", {kBrowser});
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_EQ(page.headers.at("vary"), "Accept");
  for (const char* accept : {"Accept: */*", "Accept: application/json", "Other: text/html"}) {
    const HttpReply other = server.Get("/", {accept});
    EXPECT_EQ(other.json()["status"], "ok") << accept;
    EXPECT_EQ(other.headers.at("vary"), "Accept");
  }
  const HttpReply head = tq::test::Fetch(server.port(), "HEAD", "/", "", {kBrowser});
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(page.body.size()));
  // What the page asks for is behind the key.
  EXPECT_EQ(server.Get("/props").status, 401);
  EXPECT_EQ(server.Get("/metrics").status, 401);
}

TEST(Page, EveryFileHasItsTypeAndNeedsNoKey) {
  TestServer server({.service = {.api_keys = {"secret"}}});
  std::set<std::string_view> names;
  for (const PageFile& file : PageFiles()) {
    EXPECT_TRUE(names.insert(file.name).second) << file.name;
    const HttpReply reply = server.Get("/page/" + std::string(file.name));
    EXPECT_EQ(reply.status, 200) << file.name;
    EXPECT_EQ(reply.body, file.body);
    EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
    const std::string type = reply.headers.at("content-type");
    const std::string_view end = file.name.substr(file.name.rfind('.'));
    EXPECT_EQ(type, end == ".html"  ? "text/html; charset=utf-8"
                    : end == ".css" ? "text/css; charset=utf-8"
                    : end == ".js"  ? "text/javascript; charset=utf-8"
                                    : "image/svg+xml")
        << file.name;
  }
  for (const char* path : {"/page/none.js", "/page/..%2Fpage.cc", "/page/"}) {
    const HttpReply reply = server.Get(path, {"x-api-key: secret"});
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.json()["error"]["type"], "invalid_request_error");
  }
  EXPECT_EQ(server.Post("/page/main.js", "{}", {"x-api-key: secret"}).status, 405);
}

TEST(Page, WhatTheBrowserHasIsNotSentAgain) {
  TestServer server({});
  const std::string tag = server.Get("/page/main.js").headers.at("etag");
  EXPECT_NE(tag, server.Get("/page/dom.js").headers.at("etag"));
  for (const std::string& known : {tag, "\"other\", W/" + tag, std::string("*")}) {
    const HttpReply reply = server.Get("/page/main.js", {"If-None-Match: " + known});
    EXPECT_EQ(reply.status, 304) << known;
    EXPECT_EQ(reply.body, "");
    EXPECT_EQ(reply.headers.at("etag"), tag);
    EXPECT_EQ(reply.headers.at("cache-control"), "no-cache");
  }
  EXPECT_EQ(server.Get("/page/main.js", {"If-None-Match: \"other\""}).status, 200);
}

TEST(Page, MayLoadFromThisServerAlone) {
  TestServer server({});
  const std::string policy = server.Get("/", {kBrowser}).headers.at("content-security-policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; ")) << policy;
  for (const char* open : {"unsafe", "http", "data:", "blob:", "*"}) {
    EXPECT_EQ(policy.find(open), std::string::npos) << open;
  }
  EXPECT_NE(policy.find("require-trusted-types-for 'script'"), std::string::npos);
}

// What a model says becomes text nodes: none of the ways from a text to markup or script is used.
TEST(Page, NoFileTurnsTextIntoMarkup) {
  for (const PageFile& file : PageFiles()) {
    for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                            "DOMParser", "createContextualFragment", "srcdoc", "setHTML", "eval(",
                            "new Function", " style=\"", " onclick=\"", "<script>"}) {
      EXPECT_EQ(file.body.find(way), std::string_view::npos) << file.name << ": " << way;
    }
    for (const char c : file.body) ASSERT_LT(static_cast<unsigned char>(c), 0x80) << file.name;
  }
}

TEST(Page, IndexNamesFilesThatAreThere) {
  std::set<std::string, std::less<>> names;
  std::string_view index;
  for (const PageFile& file : PageFiles()) {
    names.emplace(file.name);
    if (file.name == "index.html") index = file.body;
  }
  int found = 0;
  for (size_t at = index.find("\"page/"); at != std::string_view::npos;
       at = index.find("\"page/", at + 1)) {
    const size_t begin = at + 6;
    EXPECT_TRUE(names.contains(index.substr(begin, index.find('"', begin) - begin))) << begin;
    ++found;
  }
  EXPECT_GE(found, 8);
}

TEST(Page, NumbersThatItShows) {
  TestServer server({});
  const Json props = server.Get("/props").json();
  EXPECT_EQ(props["thinking"], "none");
  EXPECT_EQ(props["tools"], true);
  EXPECT_FALSE(props["version"].get<std::string>().empty());
  const std::string metrics = server.Get("/metrics").body;
  const auto value = [&metrics](const std::string& name) {
    const size_t at = metrics.find("\n" + name + " ");
    return at == std::string::npos ? -1.0 : std::stod(metrics.substr(at + name.size() + 2));
  };
  EXPECT_EQ(value("turboquant_kv_page_tokens"), 64);
  EXPECT_GT(value("turboquant_kv_bytes_per_token"), 0);
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value("turboquant_system_memory_bytes"), value("process_resident_memory_bytes"));
  EXPECT_GT(value("turboquant_kv_pages"), 0);
}

}  // namespace
}  // namespace tq::server
