// Vectors of texts from real blocks: the reference's hidden states behind the final norm, pooled;
// the same bits in any chunk, company and behind any prefix, and as one forward pass gives them.
#include <numeric>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "model/step_context.h"
#include "support/checkpoint.h"
#include "tensor/scratch.h"

namespace tq::test {
namespace {

constexpr Pooling kPoolings[] = {Pooling::kLast, Pooling::kMean, Pooling::kFirst};

// rows [T, width], in the order of the prompt.
std::vector<float> PoolRows(const std::vector<float>& rows, size_t width, Pooling pooling) {
  const size_t count = rows.size() / width;
  const size_t first = pooling == Pooling::kLast ? count - 1 : 0;
  const size_t end = pooling == Pooling::kFirst ? 1 : count;
  std::vector<float> out(width);
  for (size_t k = 0; k < width; ++k) {
    double sum = 0;
    for (size_t i = first; i < end; ++i) sum += double{rows[i * width + k]};
    out[k] = static_cast<float>(sum / static_cast<double>(end - first));
  }
  return out;
}

class EmbeddingTest : public testing::TestWithParam<const char*> {
 protected:
  Loaded Load(ActivationMode mode) const {
    auto loaded = LoadOn(std::string(TQ_TEST_DATA "/models/") + GetParam(), "",
                         {.num_threads = 2, .activations = mode, .isa = ""});
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return std::move(*loaded);
  }
  static std::unique_ptr<Engine> MakeEngine(const Loaded& loaded, int64_t chunk) {
    EngineOptions options;
    options.max_context = 256;
    options.kv_tokens = 2048;
    options.max_sequences = 8;
    options.prefill_chunk = chunk;
    options.kv = KvSettingsFor(*loaded.backend);
    options.embeddings = true;
    auto engine = Engine::Create(*loaded.model, *loaded.backend, options);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return std::move(*engine);
  }
  static std::shared_ptr<TokenStream> Submit(Engine& engine, const std::vector<int32_t>& ids,
                                             Pooling pooling) {
    GenerateRequest request;
    request.prompt = ids;
    request.pooling = pooling;
    auto stream = engine.Submit(std::move(request));
    EXPECT_TRUE(stream.ok()) << stream.status().message();
    return *stream;
  }
  static std::vector<float> Wait(TokenStream& stream) {
    EXPECT_FALSE(stream.Next());
    EXPECT_EQ(stream.finish_reason(), FinishReason::kStop) << stream.status().message();
    return stream.embedding();
  }
  // All hidden states of one forward pass, without an engine.
  static std::vector<float> HiddenOf(const Loaded& loaded, const std::vector<int32_t>& ids) {
    const auto count = static_cast<int64_t>(ids.size());
    auto cache = KvCache::Create(loaded.model->Needs(KvSettingsFor(*loaded.backend)),
                                 KvCache::PagesFor(count), 1);
    EXPECT_TRUE(cache.ok());
    StepPlan plan;
    plan.ids = ids;
    plan.positions.resize(ids.size());
    std::iota(plan.positions.begin(), plan.positions.end(), 0);
    SequencePlan sequence;
    sequence.num_tokens = count;
    sequence.state_slot = cache->AllocateSlot();
    cache->Allocate(KvCache::PagesFor(count), sequence.pages);
    plan.sequences.push_back(std::move(sequence));
    std::vector<float> rows(ids.size() * static_cast<size_t>(loaded.model->spec().hidden_size));
    Scratch scratch;
    StepContext step{.backend = *loaded.backend, .scratch = scratch, .plan = plan, .ropes = {}};
    loaded.model->ForwardHidden(step, *cache, nullptr, {plan.positions, rows.data()});
    return rows;
  }
};

TEST_P(EmbeddingTest, ArePooledFromTheReferencesStates) {
  const TensorFile expected(std::string(TQ_TEST_DATA "/models/") + GetParam() +
                            "/expected.safetensors");
  const std::vector<int32_t> ids = expected.Ids("tokens");
  const std::vector<float> hidden = expected.Floats("hidden");
  const Loaded loaded = Load(ActivationMode::kF32);
  const auto width = static_cast<size_t>(loaded.model->spec().hidden_size);
  // The last entry is behind the final norm.
  const size_t plane = ids.size() * width;
  ASSERT_EQ(hidden.size() % plane, 0u);
  const std::vector<float> last(hidden.end() - static_cast<ptrdiff_t>(plane), hidden.end());
  const auto engine = MakeEngine(loaded, 32);
  for (const Pooling pooling : kPoolings) {
    const std::vector<float> want = PoolRows(last, width, pooling);
    const std::vector<float> found = Wait(*Submit(*engine, ids, pooling));
    ASSERT_EQ(found.size(), want.size());
    EXPECT_LE(MaxDifference(found, want), 2e-4 * StandardDeviation(last)) << PoolingName(pooling);
  }
}

TEST_P(EmbeddingTest, HaveTheSameBitsInAnyChunkAndCompany) {
  const Loaded loaded = Load(ActivationMode::kInt8);
  const auto width = static_cast<size_t>(loaded.model->spec().hidden_size);
  std::vector<std::vector<int32_t>> prompts;
  for (const int length : {1, 5, 64, 65, 130, 200}) {
    auto& prompt = prompts.emplace_back();
    for (int i = 0; i < length; ++i) prompt.push_back((i * 37 + length / 70) % 200 + 3);
  }
  std::vector<std::vector<float>> rows;
  for (const auto& prompt : prompts) rows.push_back(HiddenOf(loaded, prompt));
  for (const int64_t chunk : {7, 64, 512}) {
    const auto engine = MakeEngine(loaded, chunk);
    for (int round = 0; round < 2; ++round) {  // the second one finds prefixes
      GenerateRequest answer;
      answer.prompt = prompts[2];
      answer.max_tokens = 20;
      const auto company = engine->Submit(answer);
      std::vector<std::shared_ptr<TokenStream>> streams;
      for (const auto& prompt : prompts) {
        for (const Pooling pooling : kPoolings) {
          streams.push_back(Submit(*engine, prompt, pooling));
        }
      }
      for (size_t i = 0; i < streams.size(); ++i) {
        EXPECT_EQ(Wait(*streams[i]), PoolRows(rows[i / 3], width, kPoolings[i % 3]))
            << prompts[i / 3].size() << " " << PoolingName(kPoolings[i % 3]) << " in " << chunk;
      }
      if (round > 0) {
        EXPECT_GT(streams[streams.size() - 3]->stats().cached_tokens, 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddingTest,
                         testing::Values("llama", "qwen3", "gemma3_text", "mistral_sliding",
                                         "qwen3_5_text", "nemotron_h"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace tq::test
