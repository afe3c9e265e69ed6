// A steady decode step allocates nothing: counts operator new on the engine thread between two
// steps.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/fake_model.h"

namespace {
thread_local int64_t allocations = 0;
}  // namespace

// Not inlined: GCC 12 would pair a caller's `new` with our `free` and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tq {
namespace {

TEST(EngineAllocations, NoneInASteadyDecode) {
  int64_t step = 0;
  int64_t counts[2] = {0, 0};
  std::atomic<bool> submitted{false};
  const auto hook = [&](const StepPlan& plan) {
    submitted.wait(false);  // so that all four run side by side
    if (plan.sequences.size() != 4 || plan.num_tokens() != 4) return;
    ++step;
    if (step == 5) counts[0] = allocations;
    if (step == 300) counts[1] = allocations;
  };
  auto engine = Engine::Create(std::make_unique<FakeModel>(4096, hook), {.kv_tokens = 8192});
  ASSERT_TRUE(engine.ok());
  SamplingParams hot;
  hot.temperature = 1.0f;
  hot.top_p = 0.9f;
  hot.repetition_penalty = 1.1f;
  SamplingParams short_list = hot;
  short_list.top_k = 5;
  short_list.min_p = 0.1f;
  SamplingParams everything = hot;
  everything.typical_p = 0.9f;
  everything.xtc_probability = 0.5f;
  everything.presence_penalty = 0.2f;
  everything.frequency_penalty = 0.1f;
  everything.dry_multiplier = 0.8f;
  everything.dry_breakers = {{5}, {7, 8}};
  everything.bad_words = {{3}, {4, 5}};
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (const SamplingParams& params : {SamplingParams{}, hot, short_list, everything}) {
    GenerateRequest request;
    request.prompt = {1, 2, 3};
    request.sampling = params;
    request.max_tokens = 500;
    request.num_logprobs = params.top_k > 0 ? -1 : 20;
    request.loop_limit = 400;
    auto stream = (*engine)->Submit(std::move(request));
    ASSERT_TRUE(stream.ok());
    streams.push_back(*stream);
  }
  submitted = true;
  submitted.notify_all();
  for (const auto& stream : streams) {
    int64_t received = 0;
    while (stream->Next()) ++received;
    EXPECT_EQ(received, 500);
  }
  EXPECT_GE(step, 300);
  EXPECT_GT(counts[0], 0);
  EXPECT_EQ(counts[0], counts[1]);
}

}  // namespace
}  // namespace tq
