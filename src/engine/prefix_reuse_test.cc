// Requests that take up what earlier or running ones computed: the same answer, fewer tokens.
#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "engine/engine_for_test.h"

namespace tq {
namespace {

// The first `common` ids of the prompt of Request(..., 0), then others.
GenerateRequest Branch(int64_t common, int64_t length, int32_t salt) {
  GenerateRequest request = Request(length, 10, salt);
  const std::vector<int32_t> trunk = Prompt(common, 0);
  std::copy(trunk.begin(), trunk.end(), request.prompt.begin());
  request.prompt[static_cast<size_t>(common)] =
      (Prompt(common + 1, 0).back() + 1 + salt) % FakeModel::kVocab;
  return request;
}

int64_t RunOne(Engine& engine, const GenerateRequest& request) {
  const auto stream = MustSubmit(engine, request);
  EXPECT_EQ(ReadAll(*stream), Alone(request));
  return stream->stats().cached_tokens;
}

class PrefixReuse : public testing::TestWithParam<bool> {
 protected:
  static bool recurrent() { return GetParam(); }
  static std::unique_ptr<Engine> Make(const EngineOptions& options,
                                      FakeModel::StepHook hook = nullptr) {
    return MakeEngine(options, std::move(hook), recurrent());
  }
};

TEST_P(PrefixReuse, TheSamePromptAgain) {
  auto engine = Make({.prefill_chunk = 128});
  EXPECT_EQ(RunOne(*engine, Request(500, 30)), 0);
  // Recurrent: the checkpoint before the prompt's end, else all but the last token.
  EXPECT_EQ(RunOne(*engine, Request(500, 30)), recurrent() ? 448 : 499);
  EXPECT_EQ(RunOne(*engine, Request(500, 5)), recurrent() ? 448 : 499);
  GenerateRequest sampled = Request(500, 30);
  sampled.sampling.temperature = 1.0f;
  sampled.sampling.seed = 9;
  sampled.sampling.repetition_penalty = 1.3f;
  EXPECT_GT(RunOne(*engine, sampled), 0);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.prefix_hits, 3);
  EXPECT_GE(stats.cached_tokens, 3 * 448);
  EXPECT_EQ(stats.free_pages, stats.total_pages);
  EXPECT_GT(stats.cached_pages, 8);
  EXPECT_EQ(stats.checkpoints > 0, recurrent());
}

TEST_P(PrefixReuse, TheNextTurnOfAConversation) {
  auto engine = Make({.max_context = 2000, .kv_tokens = 4000});
  GenerateRequest request = Request(150, 75);
  for (int turn = 0; turn < 5; ++turn) {
    const auto stream = MustSubmit(*engine, request);
    const std::vector<int32_t> answer = ReadAll(*stream);
    EXPECT_EQ(answer, Alone(request)) << turn;
    // All but the answer's last token, which was never put in.
    const auto length = static_cast<int64_t>(request.prompt.size());
    EXPECT_EQ(stream->stats().cached_tokens, turn == 0 ? 0 : length - 42) << turn;
    request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
    const std::vector<int32_t> next = Prompt(41, turn);
    request.prompt.insert(request.prompt.end(), next.begin(), next.end());
  }
}

TEST_P(PrefixReuse, TheLastMessageRenderedDifferently) {
  auto engine = Make({.prefill_chunk = 512});
  RunOne(*engine, Request(400, 100));
  const GenerateRequest next = Branch(393, 450, 3);
  EXPECT_EQ(RunOne(*engine, next), recurrent() ? 384 : 393);
}

TEST_P(PrefixReuse, TwoPromptsThatShareTheirBeginning) {
  auto engine = Make({.prefill_chunk = 256});
  RunOne(*engine, Branch(700, 1000, 1));
  EXPECT_EQ(RunOne(*engine, Branch(700, 900, 2)), recurrent() ? 512 : 700);
  // The second one left a checkpoint where the two part.
  EXPECT_EQ(RunOne(*engine, Branch(700, 800, 3)), recurrent() ? 640 : 700);
}

TEST_P(PrefixReuse, ARunningRequestLendsItsPages) {
  Gate gate;
  gate.Allow(1);
  auto engine = Make({.prefill_chunk = 512}, gate.Hook());
  const auto first = MustSubmit(*engine, Request(400, 100));
  gate.WaitEntered(2);
  const auto second = MustSubmit(*engine, Request(400, 100));
  gate.Open();
  EXPECT_EQ(ReadAll(*second), Alone(Request(400, 100)));
  EXPECT_EQ(ReadAll(*first), Alone(Request(400, 100)));
  EXPECT_GE(second->stats().cached_tokens, 384);
}

TEST_P(PrefixReuse, RequestsOfOneMomentComputeTheirCommonPartOnce) {
  Gate gate;
  int64_t computed = 0;  // written by the engine thread
  const auto hold = gate.Hook();
  auto engine = Make({.max_context = 1000, .kv_tokens = 8000, .prefill_chunk = 256},
                     [&](const StepPlan& plan) {
                       for (const SequencePlan& s : plan.sequences) {
                         if (s.num_tokens > 1) computed += s.num_tokens;
                       }
                       hold(plan);
                     });
  const auto blocker = MustSubmit(*engine, Request(3, 10, 8));
  gate.WaitEntered(1);
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int32_t i = 0; i < 4; ++i) streams.push_back(MustSubmit(*engine, Branch(520, 600, 10 + i)));
  gate.Open();
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ReadAll(*streams[static_cast<size_t>(i)]), Alone(Branch(520, 600, 10 + i)));
  }
  ReadAll(*blocker);
  engine.reset();
  EXPECT_LE(computed, 3 + 600 + 3 * (600 - 512));
}

TEST_P(PrefixReuse, ACancelledRequestLeavesWhatItComputed) {
  Gate gate;
  gate.Allow(3);
  auto engine = Make({.prefill_chunk = 128}, gate.Hook());
  const auto cancelled = MustSubmit(*engine, Request(600, 10));
  gate.WaitEntered(4);
  cancelled->Cancel();
  gate.Open();
  ReadAll(*cancelled);
  EXPECT_EQ(RunOne(*engine, Request(600, 10)), 512);
}

TEST_P(PrefixReuse, EvictedAndAgain) {
  auto engine = Make({.max_context = 640, .kv_tokens = 640, .prefill_chunk = 128});
  RunOne(*engine, Request(500, 20));
  EXPECT_GT(RunOne(*engine, Request(500, 20)), 0);
  RunOne(*engine, Request(620, 20, 7));  // needs every page
  EXPECT_GE(engine->stats().evicted_pages, 8);
  EXPECT_EQ(RunOne(*engine, Request(500, 20)), 0);
  EXPECT_GT(RunOne(*engine, Request(500, 20)), 0);
  EXPECT_EQ(engine->stats().free_pages, 10);
}

TEST_P(PrefixReuse, AnImageIsPartOfTheKey) {
  auto engine = Make({.prefill_chunk = 64});
  GenerateRequest request = Request(300, 5);
  request.extras = {{100, 150, {1, 2}}};
  RunOne(*engine, request);
  EXPECT_GE(RunOne(*engine, request), 256);
  request.extras[0].key[1] = 3;
  EXPECT_EQ(RunOne(*engine, request), recurrent() ? 64 : 100);
  request.extras[0].end = 301;
  EXPECT_EQ(engine->Submit(request).status().message(),
            "extras[0]: expected a span of prompt ids inside [0, 300), found [100, 301)");
}

TEST_P(PrefixReuse, OffMeansOff) {
  auto engine = Make({.prefix_cache = false});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(RunOne(*engine, Request(300, 20)), 0);
  EXPECT_EQ(engine->stats().cached_pages, 0);
  EXPECT_EQ(engine->stats().free_pages, engine->stats().total_pages);
}

TEST_P(PrefixReuse, ChunksAndCompanyDoNotMatter) {
  std::vector<GenerateRequest> requests;
  for (int32_t i = 0; i < 16; ++i) {
    GenerateRequest request = Branch(40 + i % 6 * 70, 100 + i % 6 * 70 + i * 7, i);
    request.max_tokens = 20 + i;
    request.sampling.temperature = i % 2 ? 0.9f : 0.0f;
    request.sampling.seed = static_cast<uint64_t>(i);
    requests.push_back(request);
  }
  for (const int64_t chunk : {7, 64, 512}) {
    for (const int64_t kv_tokens : {1024, 3000, 20000}) {
      auto engine = Make({.max_context = 1000,
                          .kv_tokens = kv_tokens,
                          .max_sequences = 5,
                          .prefill_chunk = chunk,
                          .state_checkpoints = chunk == 64 ? 2 : -1});
      std::vector<std::shared_ptr<TokenStream>> streams;
      for (const auto& request : requests) streams.push_back(MustSubmit(*engine, request));
      for (size_t i = 0; i < streams.size(); ++i) {
        EXPECT_EQ(ReadAll(*streams[i]), Alone(requests[i])) << chunk << " " << i;
      }
      EXPECT_EQ(engine->stats().free_pages, engine->stats().total_pages);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, PrefixReuse, testing::Bool(),
                         [](const auto& param) { return param.param ? "Recurrent" : "Paged"; });

}  // namespace
}  // namespace tq
