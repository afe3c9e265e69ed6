// Pages on demand, priorities, and giving way.
#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "engine/engine_for_test.h"

namespace tq {
namespace {

class Preemption : public testing::TestWithParam<bool> {
 protected:
  static std::unique_ptr<Engine> Make(const EngineOptions& options,
                                      FakeModel::StepHook hook = nullptr) {
    return MakeEngine(options, std::move(hook), GetParam());
  }
};

TEST_P(Preemption, TheYoungestGivesWayAndGoesOn) {
  auto engine = Make({.max_context = 512, .kv_tokens = 512});
  std::vector<GenerateRequest> requests;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int32_t i = 0; i < 6; ++i) {
    GenerateRequest request = Request(40 + i, 300, i);
    request.sampling.temperature = i % 2 ? 1.0f : 0.0f;
    request.sampling.repetition_penalty = 1.2f;
    requests.push_back(request);
    streams.push_back(MustSubmit(*engine, request));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(ReadAll(*streams[i]), Alone(requests[i])) << i;
    EXPECT_EQ(streams[i]->stats().prompt_tokens, 40 + static_cast<int64_t>(i));
    EXPECT_EQ(streams[i]->stats().cached_tokens, 0);
  }
  EXPECT_GT(engine->stats().preemptions, 0);
  EXPECT_EQ(engine->stats().free_pages, 8);
}

TEST_P(Preemption, MoreRunThanTheirLongestRunsWouldAllow) {
  Gate gate;
  size_t most = 0;  // written by the engine thread
  const auto hold = gate.Hook();
  auto engine = Make({.max_context = 4096, .kv_tokens = 4096}, [&](const StepPlan& plan) {
    most = std::max(most, plan.sequences.size());
    hold(plan);
  });
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int32_t i = 0; i < 8; ++i) {
    GenerateRequest request = Request(30, -1, i);
    request.min_tokens = 200;
    for (int32_t id = 0; id < FakeModel::kVocab; id += 2) request.end_ids.push_back(id);
    streams.push_back(MustSubmit(*engine, request));
  }
  gate.Open();
  for (const auto& stream : streams) EXPECT_GE(ReadAll(*stream).size(), 200u);
  EXPECT_EQ(engine->stats().preemptions, 0);
  engine.reset();
  EXPECT_EQ(most, 8u);
}

TEST_P(Preemption, AHigherPriorityGoesFirst) {
  Gate gate;
  std::vector<int64_t> started;  // prompt lengths; written by the engine thread
  const auto hold = gate.Hook();
  auto engine = Make({.max_sequences = 1}, [&](const StepPlan& plan) {
    for (const SequencePlan& s : plan.sequences) {
      if (s.start_position == 0) started.push_back(s.num_tokens);
    }
    hold(plan);
  });
  const auto submit = [&](int64_t length, int priority) {
    GenerateRequest request = Request(length, 30, static_cast<int32_t>(length));
    request.priority = priority;
    return std::pair(MustSubmit(*engine, request), Alone(request));
  };
  const auto low = submit(10, -1);
  gate.WaitEntered(1);
  const std::vector<std::pair<std::shared_ptr<TokenStream>, std::vector<int32_t>>> all = {
      low, submit(20, -1), submit(30, 0), submit(40, 0), submit(50, 2)};
  gate.Open();
  for (const auto& [stream, expected] : all) EXPECT_EQ(ReadAll(*stream), expected);
  EXPECT_EQ(engine->stats().preemptions, 1);
  engine.reset();
  // The first gave way after its first step, and came back before the other one of its priority.
  EXPECT_EQ(started.front(), 10);
  std::erase(started, 10);
  EXPECT_EQ(std::vector<int64_t>(started.begin(), started.begin() + 3),
            (std::vector<int64_t>{50, 30, 40}));
}

TEST_P(Preemption, AReaderThatIsBehindKeepsNoPages) {
  auto engine = Make({.max_context = 2048, .kv_tokens = 2048});
  const GenerateRequest slow_request = Request(5, 1500);
  const auto slow = MustSubmit(*engine, slow_request);
  while (!slow->full()) std::this_thread::yield();
  const GenerateRequest large = Request(1200, 800, 3);
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, large)), Alone(large));
  EXPECT_EQ(engine->stats().preemptions, 1);
  EXPECT_EQ(ReadAll(*slow), Alone(slow_request));
  EXPECT_EQ(engine->stats().free_pages, engine->stats().total_pages);
}

TEST_P(Preemption, OneThatGaveWayCanBeCancelled) {
  auto engine = Make({.max_context = 2048, .kv_tokens = 2048});
  const auto slow = MustSubmit(*engine, Request(5, 1500));
  while (!slow->full()) std::this_thread::yield();
  ReadAll(*MustSubmit(*engine, Request(1200, 800, 3)));
  EXPECT_EQ(engine->stats().waiting, 1);
  slow->Cancel();
  EXPECT_EQ(ReadAll(*slow).size(), TokenStream::kCapacity);
  EXPECT_EQ(slow->finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(slow->stats().generated_tokens, static_cast<int64_t>(TokenStream::kCapacity));
}

TEST_P(Preemption, AShortPromptDoesNotWaitForALongOne) {
  Gate gate;
  int64_t steps_of_both = 0;  // written by the engine thread
  const auto hold = gate.Hook();
  auto engine = Make({.prefill_chunk = 64}, [&](const StepPlan& plan) {
    if (plan.sequences.size() == 2) ++steps_of_both;
    hold(plan);
  });
  const auto longer = MustSubmit(*engine, Request(3000, 2));
  gate.WaitEntered(1);
  const auto shorter = MustSubmit(*engine, Request(60, 2, 1));
  gate.Open();
  EXPECT_EQ(ReadAll(*shorter), Alone(Request(60, 2, 1)));
  EXPECT_EQ(ReadAll(*longer), Alone(Request(3000, 2)));
  EXPECT_LT(engine->stats().steps, 80);
  engine.reset();
  EXPECT_EQ(steps_of_both, 3);  // 32 and 28 ids, then the second one of the answer
}

// Whatever waits: a step has one chunk of prompts at most, and every running stream's next id.
TEST_P(Preemption, LongPromptsNeverStallRunningStreams) {
  constexpr int64_t kChunk = 32;
  Gate gate;
  std::vector<std::pair<int64_t, int64_t>> steps;  // decodes, prompt ids; by the engine thread
  const auto hold = gate.Hook();
  auto engine = Make({.max_context = 2048, .kv_tokens = 16384, .prefill_chunk = kChunk},
                     [&](const StepPlan& plan) {
                       auto& [decodes, prompts] = steps.emplace_back();
                       for (const SequencePlan& s : plan.sequences) {
                         (s.num_tokens == 1 ? decodes : prompts) += s.num_tokens;
                       }
                       hold(plan);
                     });
  const GenerateRequest talk = Request(20, 200, 1);
  std::vector<std::shared_ptr<TokenStream>> running = {MustSubmit(*engine, talk),
                                                       MustSubmit(*engine, talk)};
  gate.Allow(20);
  gate.WaitEntered(21);
  std::vector<std::shared_ptr<TokenStream>> others;
  for (int32_t i = 0; i < 4; ++i) others.push_back(MustSubmit(*engine, Request(700, 2, 10 + i)));
  gate.Open();
  for (const auto& stream : running) EXPECT_EQ(ReadAll(*stream), Alone(talk));
  for (const auto& stream : others) EXPECT_EQ(ReadAll(*stream).size(), 2u);
  EXPECT_EQ(engine->stats().preemptions, 0);
  engine.reset();
  int64_t mixed = 0;
  for (size_t i = 21; i < 195; ++i) {
    // A prompt's last piece may be a single id too.
    EXPECT_GE(steps[i].first, 2) << i;
    EXPECT_LE(steps[i].first + steps[i].second, 2 + 4 + kChunk) << i;
    mixed += steps[i].second > 0 ? 1 : 0;
  }
  EXPECT_GE(mixed, 4 * 700 / kChunk - 4);
}

// Of one priority by arrival, also when each has to wait for the one before it.
TEST_P(Preemption, OneAfterTheOtherInTheOrderOfTheirArrival) {
  Gate gate;
  std::vector<int64_t> started;  // prompt lengths; written by the engine thread
  const auto hold = gate.Hook();
  auto engine = Make({.max_sequences = 1, .max_queue = 64}, [&](const StepPlan& plan) {
    for (const SequencePlan& s : plan.sequences) {
      if (s.start_position == 0) started.push_back(s.num_tokens);
    }
    hold(plan);
  });
  const auto first = MustSubmit(*engine, Request(5, 3));
  gate.WaitEntered(1);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int32_t i = 0; i < 20; ++i) {
    GenerateRequest request = Request(20 + i, 5, i);
    request.priority = i % 2;
    streams.push_back(MustSubmit(*engine, request));
  }
  gate.Open();
  for (const auto& stream : streams) ReadAll(*stream);
  ReadAll(*first);
  engine.reset();
  std::erase_if(started, [](int64_t length) { return length < 20; });  // the first one, twice
  std::vector<int64_t> expected;
  for (int64_t i = 1; i < 20; i += 2) expected.push_back(20 + i);
  for (int64_t i = 0; i < 20; i += 2) expected.push_back(20 + i);
  EXPECT_EQ(started, expected);
}

INSTANTIATE_TEST_SUITE_P(Both, Preemption, testing::Bool(),
                         [](const auto& param) { return param.param ? "Recurrent" : "Paged"; });

}  // namespace
}  // namespace tq
