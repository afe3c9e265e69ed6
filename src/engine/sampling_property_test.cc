// The same seed gives the same ids and the same log probabilities, whatever else runs.
#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "engine/engine_for_test.h"
#include "engine/loop_detector.h"

namespace tq {
namespace {

struct Setting {
  const char* name;
  EngineOptions options;
  bool recurrent;
};

class SameSeed : public testing::TestWithParam<Setting> {};

std::vector<GenerateRequest> MixedRequests() {
  std::mt19937 random(77);
  std::vector<GenerateRequest> requests;
  for (int32_t i = 0; i < 24; ++i) {
    // Some share their prompt, some its beginning.
    GenerateRequest request = Request(20 + i % 5 * 60, 120 + 3 * i, i % 5);
    request.sampling = MixedSampling(random);
    request.num_logprobs = i % 4 == 3 ? -1 : i % 4 * 10;
    request.priority = i % 3;
    if (i % 4 == 1) request.end_ids = {1, 2, 3, 4};
    request.min_tokens = i % 8;
    request.ignore_end = i % 8 == 1;
    requests.push_back(request);
  }
  return requests;
}

// SA-05 (a), (b): alone, twice, next to strangers, after giving way, from the cache or computed.
TEST_P(SameSeed, SA05_GivesTheSameTextAndLogprobs) {
  const std::vector<GenerateRequest> requests = MixedRequests();
  auto engine = MakeEngine(GetParam().options, nullptr, GetParam().recurrent);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (const GenerateRequest& request : requests) {
      streams.push_back(MustSubmit(*engine, request));
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      const AnswerTokens found = ReadTokens(*streams[i]);
      const AnswerTokens expected = AloneTokens(requests[i]);
      EXPECT_EQ(found.ids, expected.ids) << i;
      if (requests[i].num_logprobs >= 0) {
        EXPECT_EQ(found.logprobs, expected.logprobs) << i;
      }
    }
  }
  if (GetParam().options.kv_tokens == 512) {
    EXPECT_GT(engine->stats().preemptions, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SameSeed,
    testing::Values(
        Setting{"Alone", {.max_context = 500, .kv_tokens = 4000, .max_sequences = 1}, false},
        Setting{"Company", {.max_context = 500, .kv_tokens = 16000, .prefill_chunk = 64}, false},
        Setting{"NoCache",
                {.max_context = 500, .kv_tokens = 16000, .prefill_chunk = 7, .prefix_cache = false},
                false},
        Setting{"GivingWay", {.max_context = 500, .kv_tokens = 512, .prefill_chunk = 64}, false},
        Setting{"Recurrent", {.max_context = 500, .kv_tokens = 512, .prefill_chunk = 64}, true}),
    [](const auto& param) { return param.param.name; });

TEST(Answers, HaveSeedsOfTheirOwnAndShareThePrompt) {
  Gate gate;
  int64_t computed = 0;  // written by the engine thread
  const auto hold = gate.Hook();
  auto engine = MakeEngine({.kv_tokens = 8192, .prefill_chunk = 256}, [&](const StepPlan& plan) {
    for (const SequencePlan& s : plan.sequences) computed += s.num_tokens > 1 ? s.num_tokens : 0;
    hold(plan);
  });
  const auto blocker = MustSubmit(*engine, Request(3, 5, 8));
  gate.WaitEntered(1);
  GenerateRequest request = Request(1000, 30);
  request.sampling.temperature = 1.0f;
  request.sampling.seed = 42;
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int64_t index = 0; index < 5; ++index) {
    streams.push_back(MustSubmit(*engine, RequestOfAnswer(request, index)));
  }
  gate.Open();
  std::vector<std::vector<int32_t>> answers;
  for (int64_t index = 0; index < 5; ++index) {
    answers.push_back(ReadAll(*streams[static_cast<size_t>(index)]));
    EXPECT_EQ(answers.back(), Alone(RequestOfAnswer(request, index)));
  }
  EXPECT_EQ(answers[0], Alone(request));
  ReadAll(*blocker);
  engine.reset();
  std::sort(answers.begin(), answers.end());
  EXPECT_EQ(std::unique(answers.begin(), answers.end()), answers.end());
  // The whole pages of the prompt once, its rest for each.
  EXPECT_LE(computed, 3 + 1000 + 4 * 64);
}

// Allows these ids in this order, then the end id.
class Phrase final : public Constraint {
 public:
  Phrase(std::vector<int32_t> ids, int32_t end_id) : ids_(std::move(ids)), end_id_(end_id) {}
  void FillMask(std::span<uint32_t> bits) override {
    std::fill(bits.begin(), bits.end(), 0u);
    const int32_t id = at_ < ids_.size() ? ids_[at_] : end_id_;
    if (id >= 0) bits[static_cast<size_t>(id / 32)] |= 1u << (id % 32);
  }
  void Accept(int32_t id) override {
    EXPECT_EQ(id, ids_[at_]);
    ++at_;
  }
  bool IsTerminated() const override { return end_id_ == -1 && at_ == ids_.size(); }
  void Rollback(size_t num_tokens) override { at_ -= num_tokens; }
  std::unique_ptr<Constraint> Fork() const override { return std::make_unique<Phrase>(*this); }

 private:
  std::vector<int32_t> ids_;
  int32_t end_id_;  // -1: the phrase ends by itself; -2: nothing may follow, and it does not end
  size_t at_ = 0;
};

TEST(Constraints, SayWhatComesAndWhenItEnds) {
  const std::vector<int32_t> phrase = {90, 3, 3, 64, 31, 32, 0};
  auto engine = MakeEngine();
  for (const float temperature : {0.0f, 2.0f}) {
    for (const int32_t end_id : {-1, 96}) {
      GenerateRequest request = Request(30, 50);
      request.sampling.temperature = temperature;
      request.sampling.repetition_penalty = 1.5f;
      request.sampling.bad_words = {{64}};
      request.end_ids = {96};
      request.min_tokens = 20;  // the constraint knows better
      request.num_logprobs = 1;
      request.constraint = std::make_shared<Phrase>(phrase, end_id);
      const GenerateRequest second = RequestOfAnswer(request, 1);
      const auto stream = MustSubmit(*engine, request);
      EXPECT_EQ(ReadAll(*stream), phrase);
      EXPECT_EQ(stream->finish_reason(), FinishReason::kStop);
      EXPECT_EQ(ReadAll(*MustSubmit(*engine, second)), phrase);
    }
  }
}

TEST(Constraints, AreKeptWhileARequestGivesWay) {
  auto engine = MakeEngine({.max_context = 512, .kv_tokens = 512});
  std::vector<int32_t> phrase(250);
  for (size_t i = 0; i < phrase.size(); ++i) phrase[i] = static_cast<int32_t>(i * 7 % 90);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int32_t i = 0; i < 6; ++i) {
    GenerateRequest request = Request(40, 300, i);
    request.constraint = std::make_shared<Phrase>(phrase, -1);
    streams.push_back(MustSubmit(*engine, request));
  }
  for (const auto& stream : streams) EXPECT_EQ(ReadAll(*stream), phrase);
  EXPECT_GT(engine->stats().preemptions, 0);
}

// Remembers on which threads it was asked and told.
class Witness final : public Constraint {
 public:
  struct Threads {
    std::set<std::thread::id> fill, accept;
  };
  explicit Witness(Threads& threads) : threads_(threads) {}
  void FillMask(std::span<uint32_t> bits) override {
    threads_.fill.insert(std::this_thread::get_id());
    std::fill(bits.begin(), bits.end(), ~0u);
  }
  void Accept(int32_t) override { threads_.accept.insert(std::this_thread::get_id()); }
  bool IsTerminated() const override { return false; }
  void Rollback(size_t) override {}
  std::unique_ptr<Constraint> Fork() const override { return std::make_unique<Witness>(threads_); }

 private:
  Threads& threads_;
};

TEST(Constraints, MasksAreFilledBesideTheStep) {
  auto engine = MakeEngine();
  Witness::Threads threads;
  GenerateRequest request = Request(30, 50);
  const std::vector<int32_t> free = ReadAll(*MustSubmit(*engine, request));
  request.constraint = std::make_shared<Witness>(threads);
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, request)), free);
  engine.reset();
  EXPECT_EQ(threads.fill.size(), 1u);
  EXPECT_EQ(threads.accept.size(), 1u);
  EXPECT_NE(threads.fill, threads.accept);
}

TEST(Constraints, OneThatAllowsNothingIsAnError) {
  auto engine = MakeEngine();
  GenerateRequest request = Request(30, 50);
  request.constraint = std::make_shared<Phrase>(std::vector<int32_t>{5}, -2);
  const auto stream = MustSubmit(*engine, request);
  EXPECT_EQ(ReadAll(*stream), (std::vector<int32_t>{5}));
  EXPECT_EQ(stream->finish_reason(), FinishReason::kError);
  EXPECT_EQ(stream->status().message(),
            "constraint: expected an id that may come after 1 tokens of the answer, found none; "
            "check the grammar or schema");
}

// SA-07: a loop is noticed when it is asked for, and not otherwise.
TEST(Loops, SA07_EndAnAnswerWhenAskedFor) {
  auto engine = MakeEngine();
  GenerateRequest request = Request(30, 200);
  request.sampling.logit_bias = {{9, 1000.0f}};
  const auto patient = MustSubmit(*engine, request);
  EXPECT_EQ(ReadAll(*patient).size(), 200u);
  EXPECT_EQ(patient->finish_reason(), FinishReason::kLength);
  request.loop_limit = 12;  // the same word ten times is fine
  const auto ended = MustSubmit(*engine, request);
  EXPECT_EQ(ReadAll(*ended).size(), 12u);
  EXPECT_EQ(ended->finish_reason(), FinishReason::kLoop);
}

TEST(Loops, BlocksOfSeveralIds) {
  const auto ends_at = [](size_t period, int64_t repeats) {
    LoopDetector detector(repeats);
    std::vector<int32_t> answer;
    for (const int32_t id : {500, 501, 502}) {
      answer.push_back(id);
      EXPECT_FALSE(detector.Push(answer));
    }
    for (size_t i = 0; i < 1000; ++i) {
      answer.push_back(static_cast<int32_t>(i % period));
      if (detector.Push(answer)) return i + 1;
    }
    return size_t{0};
  };
  EXPECT_EQ(ends_at(1, 2), 2u);
  EXPECT_EQ(ends_at(4, 5), 20u);
  EXPECT_EQ(ends_at(64, 3), 192u);
  EXPECT_EQ(ends_at(65, 3), 0u);
  EXPECT_EQ(ends_at(4, 0), 0u);
}

TEST(Limits, IgnoredEndsNeverCome) {
  auto engine = MakeEngine();
  GenerateRequest request = Request(30, 100);
  for (int32_t id = 0; id < 60; ++id) request.end_ids.push_back(id);
  request.ignore_end = true;
  const auto stream = MustSubmit(*engine, request);
  const std::vector<int32_t> ids = ReadAll(*stream);
  EXPECT_EQ(ids.size(), 100u);
  EXPECT_TRUE(std::all_of(ids.begin(), ids.end(), [](int32_t id) { return id >= 60; }));
  EXPECT_EQ(ids, Alone(request));
  request.stop_ids = {ids[5]};
  EXPECT_EQ(ReadAll(*MustSubmit(*engine, request)),
            std::vector<int32_t>(ids.begin(), std::find(ids.begin(), ids.end(), ids[5])));
}

}  // namespace
}  // namespace tq
