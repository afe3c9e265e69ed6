// Requests a minute and key.
#include "server/rate_limiter.h"

#include "server/server_for_test.h"

namespace tq::server {
namespace {

using std::chrono::seconds;
using tq::test::HttpReply;

TEST(RateLimiter, LetsAMinutesWorthThrough) {
  RateLimiter limiter(6, 2);
  const auto start = RateLimiter::Clock::now();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(limiter.Take(0, start), 0);
  EXPECT_EQ(limiter.Take(0, start), 10);
  EXPECT_EQ(limiter.Take(1, start), 0) << "another key";
  EXPECT_EQ(limiter.Take(0, start + seconds(4)), 6);
  EXPECT_EQ(limiter.Take(0, start + seconds(10)), 0);
  EXPECT_EQ(limiter.Take(0, start + seconds(10)), 10);
  // However long it was quiet, it does not save up more than a minute's worth.
  for (int i = 0; i < 6; ++i) EXPECT_EQ(limiter.Take(0, start + seconds(10'000)), 0);
  EXPECT_GT(limiter.Take(0, start + seconds(10'000)), 0);
  RateLimiter none(0, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(none.Take(0, start), 0);
}

TEST(Server, OneKeyThatAsksTooOftenHasToWait) {
  TestServer server({.service = {.api_keys = {"busy", "calm"}, .rate_limit = 2}});
  const std::vector<std::string> busy = {"x-api-key: busy"};
  EXPECT_EQ(server.Post("/v1/chat/completions", kHi, busy).status, 200);
  EXPECT_EQ(server.Post("/v1/messages", kHi, busy).status, 200);
  const HttpReply openai = server.Post("/v1/chat/completions", kHi, busy);
  EXPECT_EQ(openai.status, 429);
  EXPECT_EQ(openai.json()["error"]["code"], "rate_limit_exceeded");
  const int wait = std::stoi(openai.headers.at("retry-after"));
  EXPECT_TRUE(wait > 20 && wait <= 30) << wait;
  const HttpReply anthropic = server.Post("/v1/messages", kHi, busy);
  EXPECT_EQ(anthropic.status, 429);
  EXPECT_EQ(anthropic.json()["error"]["type"], "rate_limit_error");
  // Others go on, and so do questions about the server.
  EXPECT_EQ(server.Post("/v1/messages", kHi, {"Authorization: Bearer calm"}).status, 200);
  EXPECT_EQ(server.Get("/v1/models", busy).status, 200);
  EXPECT_EQ(server.Post("/v1/messages", kHi).status, 401);
}

TEST(Server, WithoutKeysTheLimitIsForAllTogether) {
  TestServer server({.service = {.rate_limit = 1}});
  EXPECT_EQ(server.Post("/v1/chat/completions", kHi).status, 200);
  EXPECT_EQ(server.Post("/v1/chat/completions", kHi, {"x-api-key: other"}).status, 429);
}

}  // namespace
}  // namespace tq::server
