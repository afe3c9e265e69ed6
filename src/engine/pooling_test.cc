// Vectors of prompts: whatever the chunks, the company and what the prefix cache has.
#include "engine/pooling.h"

#include "engine/engine_for_test.h"

namespace tq {
namespace {

// A FakeModel whose hidden state of a token is made of all ids up to it, by way of the pages.
class HiddenModel final : public FakeModel {
 public:
  static constexpr int64_t kHidden = 3;
  explicit HiddenModel(FakeModel::StepHook hook = nullptr) : FakeModel(4096, std::move(hook)) {}

  int64_t hidden_size() const override { return kHidden; }
  void ForwardHidden(const StepPlan& plan, KvCache& cache, float* logits,
                     const HiddenRows& hidden) override {
    // The logits of every wanted token are its state's source.
    StepPlan all = plan;
    all.logits_tokens.insert(all.logits_tokens.end(), hidden.tokens.begin(), hidden.tokens.end());
    std::sort(all.logits_tokens.begin(), all.logits_tokens.end());
    std::vector<float> rows(all.logits_tokens.size() * size_t{FakeModel::kVocab});
    Forward(all, cache, rows.data());
    size_t next_logits = 0;
    size_t next_hidden = 0;
    for (size_t i = 0; i < all.logits_tokens.size(); ++i) {
      const float* row = rows.data() + i * size_t{FakeModel::kVocab};
      const int32_t token = all.logits_tokens[i];
      if (next_logits < plan.logits_tokens.size() && plan.logits_tokens[next_logits] == token) {
        std::copy_n(row, FakeModel::kVocab, logits + next_logits * size_t{FakeModel::kVocab});
        ++next_logits;
      } else {
        std::copy_n(row, kHidden, hidden.rows + next_hidden * size_t{kHidden});
        ++next_hidden;
      }
    }
    EXPECT_EQ(next_hidden, hidden.tokens.size());
  }
};

std::vector<float> Expected(const std::vector<int32_t>& prompt, Pooling pooling) {
  std::vector<double> sums(HiddenModel::kHidden);
  size_t first = 0;
  size_t last = prompt.size();
  if (pooling == Pooling::kFirst) last = 1;
  if (pooling == Pooling::kLast) first = last - 1;
  for (size_t i = first; i < last; ++i) {
    const std::vector<float> row = FakeModel::LogitsAfter(std::span(prompt).first(i + 1));
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += double{row[k]};
  }
  std::vector<float> out;
  for (const double sum : sums) {
    out.push_back(static_cast<float>(sum / static_cast<double>(last - first)));
  }
  return out;
}

std::unique_ptr<Engine> MakeHiddenEngine(EngineOptions options,
                                         FakeModel::StepHook hook = nullptr) {
  options.embeddings = true;
  auto engine = Engine::Create(std::make_unique<HiddenModel>(std::move(hook)), options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

GenerateRequest PoolingRequest(std::vector<int32_t> prompt, Pooling pooling) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.pooling = pooling;
  return request;
}

std::vector<float> Wait(TokenStream& stream) {
  EXPECT_FALSE(stream.Next().has_value());
  EXPECT_EQ(stream.finish_reason(), FinishReason::kStop) << stream.status().message();
  return stream.embedding();
}

constexpr Pooling kAll[] = {Pooling::kLast, Pooling::kMean, Pooling::kFirst};

TEST(Pooling, NamesAreReadBack) {
  for (const Pooling pooling : kAll) EXPECT_EQ(ParsePooling(PoolingName(pooling)), pooling);
  EXPECT_FALSE(ParsePooling("max"));
}

TEST(Pooling, AreTheSameInAnyChunkAndCompany) {
  for (const int64_t chunk : {1, 7, 64, 512}) {
    const auto engine = MakeHiddenEngine({.kv_tokens = 4096, .prefill_chunk = chunk});
    std::vector<std::pair<GenerateRequest, std::shared_ptr<TokenStream>>> pooled;
    std::vector<std::pair<GenerateRequest, std::shared_ptr<TokenStream>>> answers;
    for (int i = 0; i < 6; ++i) {
      answers.emplace_back(Request(20 + i, 30, i), nullptr);
      answers.back().second = MustSubmit(*engine, answers.back().first);
      for (const Pooling pooling : kAll) {
        pooled.emplace_back(PoolingRequest(Prompt(1 + 37 * i, i % 2), pooling), nullptr);
        pooled.back().second = MustSubmit(*engine, pooled.back().first);
      }
    }
    for (const auto& [request, stream] : pooled) {
      EXPECT_EQ(Wait(*stream), Expected(request.prompt, *request.pooling))
          << chunk << " " << PoolingName(*request.pooling) << " " << request.prompt.size();
      EXPECT_EQ(stream->stats().generated_tokens, 0);
    }
    for (const auto& [request, stream] : answers) EXPECT_EQ(ReadAll(*stream), Alone(request));
  }
}

TEST(Pooling, OnlyTheLastTokensStateComesAfterAPrefix) {
  const auto engine = MakeHiddenEngine({.prefill_chunk = 32});
  const std::vector<int32_t> prompt = Prompt(300, 0);
  for (int round = 0; round < 2; ++round) {
    for (const Pooling pooling : kAll) {
      const auto stream = MustSubmit(*engine, PoolingRequest(prompt, pooling));
      EXPECT_EQ(Wait(*stream), Expected(prompt, pooling)) << PoolingName(pooling);
      const bool hits = pooling == Pooling::kLast && round > 0;
      EXPECT_EQ(stream->stats().cached_tokens > 0, hits) << PoolingName(pooling) << round;
    }
  }
  // What they computed is of use to an answer.
  const auto stream = MustSubmit(*engine, Request(300, 5));
  EXPECT_EQ(ReadAll(*stream), Alone(Request(300, 5)));
  EXPECT_GT(stream->stats().cached_tokens, 250);
}

// Sent away for want of pages, it begins its sums again.
TEST(Pooling, SurvivePreemption) {
  const auto engine = MakeHiddenEngine(
      {.max_context = 320, .kv_tokens = 448, .max_sequences = 4, .prefill_chunk = 16});
  std::vector<std::pair<GenerateRequest, std::shared_ptr<TokenStream>>> pooled;
  std::vector<std::pair<GenerateRequest, std::shared_ptr<TokenStream>>> answers;
  for (int i = 0; i < 6; ++i) {
    GenerateRequest answer = Request(40, 150, i);
    answer.priority = i % 3;
    answers.emplace_back(answer, MustSubmit(*engine, answer));
    GenerateRequest request = PoolingRequest(Prompt(200 + i, 10 + i), kAll[i % 3]);
    request.priority = (i + 1) % 3;
    pooled.emplace_back(request, MustSubmit(*engine, request));
  }
  for (const auto& [request, stream] : pooled) {
    EXPECT_EQ(Wait(*stream), Expected(request.prompt, *request.pooling));
  }
  for (const auto& [request, stream] : answers) EXPECT_EQ(ReadAll(*stream), Alone(request));
  EXPECT_GT(engine->stats().preemptions, 0);
}

TEST(Pooling, CancelAndLimits) {
  Gate gate;
  const auto engine = MakeHiddenEngine({.max_context = 256, .prefill_chunk = 16}, gate.Hook());
  const auto whole = MustSubmit(*engine, PoolingRequest(Prompt(256, 1), Pooling::kMean));
  gate.WaitEntered(1);
  const auto cancelled = MustSubmit(*engine, PoolingRequest(Prompt(200, 2), Pooling::kMean));
  cancelled->Cancel();
  gate.Open();
  EXPECT_EQ(Wait(*whole), Expected(Prompt(256, 1), Pooling::kMean)) << "it may fill the context";
  EXPECT_FALSE(cancelled->Next().has_value());
  EXPECT_EQ(cancelled->finish_reason(), FinishReason::kCancelled);
  EXPECT_TRUE(cancelled->embedding().empty());
  EXPECT_EQ(engine->Submit(PoolingRequest(Prompt(257, 1), Pooling::kMean)).status().code(),
            StatusCode::kInvalidArgument);
  // Pages are given back.
  const auto again = MustSubmit(*engine, PoolingRequest(Prompt(256, 3), Pooling::kLast));
  EXPECT_EQ(Wait(*again), Expected(Prompt(256, 3), Pooling::kLast));
  EXPECT_EQ(engine->stats().running, 0);
}

TEST(Pooling, AnEngineWithoutThemSaysSo) {
  const auto engine = MakeEngine();
  EXPECT_EQ(engine->Submit(PoolingRequest({1}, Pooling::kMean)).status().code(),
            StatusCode::kUnsupported);
  EXPECT_FALSE(MakeEngine({.embeddings = true})->options().embeddings) << "the model gives none";
}

}  // namespace
}  // namespace tq
