// Ten thousand short requests with mixed samplers, many cancelled, over few pages: nothing leaks,
// no answer is wrong.
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <malloc.h>

#include "engine/engine_for_test.h"

namespace tq {
namespace {

// The allocator's count; 0 under sanitizers, which have their own.
int64_t HeapBytes() { return static_cast<int64_t>(::mallinfo2().uordblks); }

class Soak : public testing::TestWithParam<bool> {};

TEST_P(Soak, TenThousandShortRequests) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10000 / kThreads / 2;  // of each kind of model
  auto engine = MakeEngine({.max_context = 400,
                            .kv_tokens = 420,
                            .max_sequences = 6,
                            .max_queue = 16,
                            .prefill_chunk = 64},
                           nullptr, GetParam());
  std::atomic<int64_t> whole{0};
  std::atomic<int64_t> ended{0};
  std::atomic<int64_t> heap_early{0};  // in use after a fifth of the requests
  const auto client = [&](uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };
    for (int i = 0; i < kEach; ++i) {
      GenerateRequest request =
          Request(1 + below(150), 1 + below(30), static_cast<int32_t>(below(5)));
      request.priority = static_cast<int>(below(3));
      request.sampling = MixedSampling(random);
      request.num_logprobs = static_cast<int>(below(4)) - 1;
      auto stream = engine->Submit(request);
      while (!stream.ok()) {
        ASSERT_EQ(stream.status().code(), StatusCode::kBusy);
        std::this_thread::yield();
        stream = engine->Submit(request);
      }
      if (ended.fetch_add(1) == kThreads * kEach / 5) heap_early = HeapBytes();
      const int64_t what = below(8);
      if (what == 0) continue;  // dropped
      const int64_t read = what < 3 ? below(20) : 1000;
      AnswerTokens found;
      TokenLogprobs logprobs;
      while (static_cast<int64_t>(found.ids.size()) < read) {
        const std::optional<int32_t> id = (*stream)->Next(&logprobs);
        if (!id) break;
        found.ids.push_back(*id);
        found.logprobs.push_back(logprobs);
      }
      if (what < 3) (*stream)->Cancel();
      AnswerTokens expected = AloneTokens(request);
      ASSERT_LE(found.ids.size(), expected.ids.size());
      if (what < 3) {
        expected.ids.resize(found.ids.size());
        expected.logprobs.resize(found.ids.size());
      }
      ASSERT_EQ(found.ids, expected.ids);
      if (request.num_logprobs >= 0) {
        ASSERT_EQ(found.logprobs, expected.logprobs);
      }
      if (what >= 3) {
        whole.fetch_add(1);
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) threads.emplace_back(client, thread);
  for (std::thread& thread : threads) thread.join();
  while (engine->stats().running + engine->stats().waiting > 0) std::this_thread::yield();
  const EngineStats stats = engine->stats();
  EXPECT_GT(whole.load(), kThreads * kEach / 2);
  EXPECT_EQ(stats.free_pages, stats.total_pages);
  EXPECT_LE(stats.cached_pages, stats.total_pages);
  EXPECT_GT(stats.prefix_hits, 0);
  EXPECT_GT(stats.evicted_pages, 0);
  EXPECT_GT(stats.preemptions, 0);
  // What is in use now is not more than after a fifth, but for a few requests in flight.
  EXPECT_LT(HeapBytes(), heap_early.load() + (int64_t{4} << 20));
  // Every place and page can still be had at once.
  const GenerateRequest last = Request(390, 10, 77);
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, last)), Alone(last));
}

INSTANTIATE_TEST_SUITE_P(Both, Soak, testing::Bool(),
                         [](const auto& param) { return param.param ? "Recurrent" : "Paged"; });

}  // namespace
}  // namespace tq
