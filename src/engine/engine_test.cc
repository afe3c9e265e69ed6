#include "engine/engine.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "engine/engine_for_test.h"

namespace tq {
namespace {

TEST(Engine, AnswerDoesNotDependOnBatchOrChunk) {
  std::vector<GenerateRequest> requests;
  for (const int64_t length : {1, 2, 63, 64, 65, 128, 200, 500}) {
    GenerateRequest request = Request(length, 70, static_cast<int32_t>(length));
    requests.push_back(request);
    request.sampling.temperature = 0.8f;
    request.sampling.seed = static_cast<uint64_t>(length);
    request.sampling.top_p = 0.95f;
    request.sampling.repetition_penalty = 1.2f;
    requests.push_back(request);
  }
  std::vector<std::vector<int32_t>> expected;
  for (const GenerateRequest& request : requests) expected.push_back(Alone(request));
  for (const int64_t prefill_chunk : {1, 7, 64, 512}) {
    for (const int max_sequences : {1, 3, 16}) {
      auto engine = MakeEngine({.max_sequences = max_sequences, .prefill_chunk = prefill_chunk});
      std::vector<std::shared_ptr<TokenStream>> streams;
      for (const GenerateRequest& request : requests) {
        streams.push_back(MustSubmit(*engine, request));
      }
      for (size_t i = 0; i < streams.size(); ++i) {
        EXPECT_EQ(ReadAll(*streams[i]), expected[i]) << i;
        EXPECT_EQ(streams[i]->finish_reason(), FinishReason::kLength);
        EXPECT_EQ(streams[i]->stats().prompt_tokens,
                  static_cast<int64_t>(requests[i].prompt.size()));
        EXPECT_EQ(streams[i]->stats().generated_tokens, 70);
      }
      EXPECT_EQ(engine->stats().free_pages, engine->stats().total_pages);
      EXPECT_EQ(engine->stats().running, 0);
    }
  }
}

TEST(Engine, StepMixesDecodesWithOneChunkOfPrefill) {
  Gate gate;
  std::vector<std::vector<int64_t>> steps;  // tokens per sequence; written by the engine thread
  const auto hold = gate.Hook();
  auto engine = MakeEngine({.prefill_chunk = 64}, [&](const StepPlan& plan) {
    std::vector<int64_t>& step = steps.emplace_back();
    for (const SequencePlan& sequence : plan.sequences) step.push_back(sequence.num_tokens);
    hold(plan);
  });
  const auto a = MustSubmit(*engine, Request(10, 5));
  gate.WaitEntered(1);
  const auto b = MustSubmit(*engine, Request(100, 2, 1));
  const auto c = MustSubmit(*engine, Request(40, 2, 2));
  gate.Open();
  ReadAll(*a);
  ReadAll(*b);
  ReadAll(*c);
  engine.reset();
  const std::vector<std::vector<int64_t>> expected = {
      {10}, {1, 32, 32}, {1, 56, 8}, {1, 12, 1}, {1, 1}};
  EXPECT_EQ(steps, expected);
}

TEST(Engine, EndAndStopIdsEndTheAnswerAndAreNotPartOfIt) {
  auto engine = MakeEngine();
  const GenerateRequest plain = Request(20, 50);
  const std::vector<int32_t> expected = Alone(plain);
  const int32_t last = expected[12];
  const auto end = std::find(expected.begin(), expected.end(), last);
  for (const bool as_stop : {false, true}) {
    GenerateRequest request = plain;
    // Ids beyond the vocabulary never come.
    (as_stop ? request.stop_ids : request.end_ids) = {1 << 30, last, -1};
    const auto stream = MustSubmit(*engine, request);
    EXPECT_EQ(ReadAll(*stream), std::vector<int32_t>(expected.begin(), end));
    EXPECT_EQ(stream->finish_reason(), FinishReason::kStop);
    EXPECT_EQ(stream->stats().generated_tokens, end - expected.begin());
  }
}

TEST(Engine, MinTokensHoldsEndAndStopIdsBack) {
  auto engine = MakeEngine();
  GenerateRequest request = Request(20, 50);
  const std::vector<int32_t> plain = Alone(request);
  request.end_ids = {plain[0]};
  EXPECT_TRUE(ReadAll(*MustSubmit(*engine, request)).empty());
  // All but one id end the answer, so that it ends as soon as it may.
  for (int32_t id = 0; id < FakeModel::kVocab; ++id) {
    if (id != 5) (id % 2 ? request.end_ids : request.stop_ids).push_back(id);
  }
  request.min_tokens = 7;
  const auto stream = MustSubmit(*engine, request);
  const std::vector<int32_t> ids = ReadAll(*stream);
  EXPECT_GE(ids.size(), 7u);
  EXPECT_EQ(ids, std::vector<int32_t>(ids.size(), 5));
  EXPECT_EQ(stream->finish_reason(), FinishReason::kStop);
  request.min_tokens = 50;
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, request)).size(), 50u);
}

TEST(Engine, StopsWhenTheContextIsFull) {
  auto engine = MakeEngine({.max_context = 100});
  for (const int64_t max_tokens : {-1, 512}) {
    const auto stream = MustSubmit(*engine, Request(30, max_tokens));
    EXPECT_EQ(ReadAll(*stream), Alone(Request(30, 70)));
    EXPECT_EQ(stream->finish_reason(), FinishReason::kLength);
  }
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, Request(99, -1))).size(), 1u);
}

TEST(Engine, CancelEndsWithinOneStep) {
  Gate gate;
  gate.Allow(10);
  auto engine = MakeEngine({.max_sequences = 4}, gate.Hook());
  const auto cancelled = MustSubmit(*engine, Request(5, 1000));
  gate.WaitEntered(11);
  cancelled->Cancel();
  gate.Open();
  EXPECT_EQ(ReadAll(*cancelled), Alone(Request(5, 11)));  // the step in progress is the last
  EXPECT_EQ(cancelled->finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(engine->stats().free_pages, engine->stats().total_pages);
  EXPECT_EQ(engine->stats().steps, 11);
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, Request(5, 3))).size(), 3u);
}

TEST(Engine, CancelInPrefillAndWhileWaiting) {
  Gate gate;
  auto engine = MakeEngine({.max_sequences = 1, .prefill_chunk = 4}, gate.Hook());
  const auto running = MustSubmit(*engine, Request(100, 10));
  gate.WaitEntered(1);
  const auto waiting = MustSubmit(*engine, Request(100, 10));
  const auto last = MustSubmit(*engine, Request(8, 10));
  running->Cancel();
  waiting->Cancel();
  gate.Open();
  for (const auto& stream : {running, waiting}) {
    EXPECT_EQ(stream->Next(), std::nullopt);
    EXPECT_EQ(stream->finish_reason(), FinishReason::kCancelled);
    EXPECT_EQ(stream->stats().generated_tokens, 0);
  }
  EXPECT_EQ(ReadAll(*last), Alone(Request(8, 10)));
  EXPECT_EQ(engine->stats().steps, 1 + 2 + 9);
}

TEST(Engine, DroppedStreamCancels) {
  Gate gate;
  auto engine = MakeEngine({.max_sequences = 1}, gate.Hook());
  auto dropped = MustSubmit(*engine, Request(5, 4000));
  auto dropped_waiting = MustSubmit(*engine, Request(5, 4000));
  gate.WaitEntered(1);
  dropped.reset();
  dropped_waiting.reset();
  gate.Open();
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, Request(5, 3))).size(), 3u);
  EXPECT_EQ(engine->stats().steps, 1 + 3);
}

TEST(Engine, FullQueueIsBusy) {
  Gate gate;
  auto engine = MakeEngine({.max_sequences = 1, .max_queue = 2}, gate.Hook());
  std::vector<std::shared_ptr<TokenStream>> streams = {MustSubmit(*engine, Request(5, 4))};
  gate.WaitEntered(1);
  streams.push_back(MustSubmit(*engine, Request(5, 4)));
  streams.push_back(MustSubmit(*engine, Request(5, 4)));
  const auto refused = engine->Submit(Request(5, 4));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kBusy);
  EXPECT_EQ(refused.status().message(),
            "queue: expected fewer than 2 waiting requests, found 2; try again later");
  EXPECT_EQ(engine->stats().waiting, 2);
  EXPECT_EQ(engine->stats().running, 1);
  gate.Open();
  for (const auto& stream : streams) EXPECT_EQ(ReadAll(*stream), Alone(Request(5, 4)));
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, Request(5, 4))).size(), 4u);
}

TEST(Engine, WaitsInOrderForPages) {
  Gate gate;
  std::vector<int64_t> prompts;  // of the sequences that began; written by the engine thread
  const auto hold = gate.Hook();
  auto engine = MakeEngine({.max_context = 256, .kv_tokens = 256}, [&](const StepPlan& plan) {
    for (const SequencePlan& sequence : plan.sequences) {
      if (sequence.start_position == 0) prompts.push_back(sequence.num_tokens);
    }
    hold(plan);
  });
  EXPECT_EQ(engine->stats().total_pages, 4);
  EXPECT_EQ(engine->stats().kv_bytes_per_token, 16);
  const auto first = MustSubmit(*engine, Request(100, 20));  // two pages
  gate.WaitEntered(1);
  EXPECT_EQ(engine->stats().free_pages, 2);
  const auto large = MustSubmit(*engine, Request(140, -1, 1));  // three pages
  const auto small = MustSubmit(*engine, Request(10, 10, 2));   // would fit, but waits its turn
  gate.Open();
  EXPECT_EQ(ReadAll(*small), Alone(Request(10, 10, 2)));
  EXPECT_EQ(ReadAll(*large), Alone(Request(140, 116, 1)));
  EXPECT_EQ(large->finish_reason(), FinishReason::kLength);
  EXPECT_EQ(ReadAll(*first), Alone(Request(100, 20)));
  engine.reset();
  ASSERT_GE(prompts.size(), 3u);
  prompts.resize(3);
  EXPECT_EQ(prompts, (std::vector<int64_t>{100, 140, 10}));
}

TEST(Engine, FullStreamPausesOnlyItsSequence) {
  auto engine = MakeEngine({.kv_tokens = 8192});
  const GenerateRequest request = Request(5, 1500);
  const auto slow = MustSubmit(*engine, request);
  const auto fast = MustSubmit(*engine, request);
  const std::vector<int32_t> expected = Alone(request);
  EXPECT_EQ(ReadAll(*fast), expected);
  EXPECT_TRUE(slow->full());
  EXPECT_EQ(slow->finish_reason(), FinishReason::kNone);
  EXPECT_EQ(engine->stats().running, 1);
  EXPECT_EQ(ReadAll(*slow), expected);
  EXPECT_EQ(slow->stats().generated_tokens, 1500);
}

TEST(Engine, PausedSequenceCanBeCancelled) {
  auto engine = MakeEngine();
  const auto stream = MustSubmit(*engine, Request(5, 2000));
  while (!stream->full()) std::this_thread::yield();
  stream->Cancel();
  EXPECT_EQ(ReadAll(*stream).size(), TokenStream::kCapacity);
  EXPECT_EQ(stream->finish_reason(), FinishReason::kCancelled);
}

TEST(Engine, DestructorCancelsWhatRunsAndWaits) {
  auto engine = MakeEngine({.max_sequences = 2});
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int32_t i = 0; i < 5; ++i) streams.push_back(MustSubmit(*engine, Request(20, 2000, i)));
  EXPECT_TRUE(streams[0]->Next().has_value());
  // Two that nobody reads hold both places, so this one waits.
  std::thread reader([&] { EXPECT_TRUE(ReadAll(*streams[2]).empty()); });
  engine.reset();
  reader.join();
  for (const auto& stream : streams) {
    ReadAll(*stream);
    EXPECT_EQ(stream->finish_reason(), FinishReason::kCancelled);
    stream->Cancel();  // harmless without an engine
  }
}

TEST(Engine, ManyShortRequestsFromSeveralThreads) {
  auto first = MakeEngine({.max_context = 200, .kv_tokens = 1000, .max_queue = 4});
  auto second = MakeEngine({.max_sequences = 2, .prefill_chunk = 16});
  const auto client = [&](int32_t thread) {
    for (int32_t i = 0; i < 40; ++i) {
      Engine& engine = i % 3 == 0 ? *second : *first;
      GenerateRequest request = Request(1 + (i * 13 + thread) % 100, 1 + i % 9, thread * 100 + i);
      request.sampling.temperature = i % 2 ? 1.0f : 0.0f;
      auto stream = engine.Submit(request);
      while (!stream.ok() && stream.status().code() == StatusCode::kBusy) {
        std::this_thread::yield();
        stream = engine.Submit(request);
      }
      ASSERT_TRUE(stream.ok());
      if (i % 7 == 3) (*stream)->Cancel();
      if (i % 7 == 5) continue;  // dropped
      const std::vector<int32_t> expected = Alone(request);
      const std::vector<int32_t> ids = ReadAll(**stream);
      ASSERT_LE(ids.size(), expected.size());
      EXPECT_TRUE(std::equal(ids.begin(), ids.end(), expected.begin()));
      if ((*stream)->finish_reason() == FinishReason::kLength) {
        EXPECT_EQ(ids.size(), expected.size());
      } else {
        EXPECT_EQ((*stream)->finish_reason(), FinishReason::kCancelled);
        EXPECT_EQ(i % 7, 3);
      }
      (void)engine.stats();
    }
  };
  std::vector<std::thread> threads;
  for (int32_t thread = 0; thread < 4; ++thread) threads.emplace_back(client, thread);
  for (std::thread& thread : threads) thread.join();
  for (Engine* engine : {first.get(), second.get()}) {
    // Dropped ones end soon.
    while (engine->stats().running + engine->stats().waiting > 0) std::this_thread::yield();
    EXPECT_EQ(engine->stats().free_pages, engine->stats().total_pages);
  }
}

TEST(Engine, StatsAddUp) {
  auto engine = MakeEngine();
  const auto stream = MustSubmit(*engine, Request(30, 20));
  ReadAll(*stream);
  const GenerateStats stats = stream->stats();
  EXPECT_EQ(stats.prompt_tokens, 30);
  EXPECT_EQ(stats.generated_tokens, 20);
  EXPECT_GE(stats.queue_seconds, 0);
  EXPECT_GT(stats.prefill_seconds, 0);
  EXPECT_GT(stats.decode_seconds, 0);
  EXPECT_EQ(engine->stats().steps, 20);
}

}  // namespace
}  // namespace tq
