// diffusion_gemma: the prompt goes through a causal pass that fills the cache; the canvas through a
// pass in which its tokens all see each other, first without and then with the embeddings of what
// it predicted.
#include <cmath>

#include <gtest/gtest.h>

#include "support/checkpoint.h"

namespace tq::test {
namespace {

constexpr double kTolerance = 2e-4;

class Canvas {
 public:
  explicit Canvas(const Loaded& loaded) : loaded_(loaded) {
    auto cache = KvCache::Create(loaded.model->Needs(KvSettingsFor(*loaded.backend)), 2, 1);
    TQ_CHECK(cache.ok() && cache->Allocate(2, pages_));
    cache_ = std::make_unique<KvCache>(std::move(*cache));
  }

  std::vector<float> Run(const std::vector<int32_t>& ids, int64_t start, bool causal,
                         const std::vector<float>& last) {
    StepPlan plan;
    plan.causal = causal;
    plan.ids = ids;
    for (size_t i = 0; i < ids.size(); ++i) {
      plan.positions.push_back(static_cast<int32_t>(start) + static_cast<int32_t>(i));
      plan.logits_tokens.push_back(static_cast<int32_t>(i));
    }
    plan.sequences.push_back(
        {.num_tokens = static_cast<int64_t>(ids.size()), .start_position = start, .pages = pages_});
    const auto num_tokens = static_cast<int64_t>(ids.size());
    if (!last.empty()) {
      plan.embeddings.push_back(
          {.num_tokens = num_tokens, .use = EmbeddingUse::kCondition, .rows = last});
    }
    std::vector<float> logits(ids.size() * static_cast<size_t>(vocab()));
    Scratch scratch;
    StepContext step{*loaded_.backend, scratch, plan, nullptr, {}};
    loaded_.model->Forward(step, *cache_, logits.data());
    return logits;
  }

  // sqrt(hidden) * softmax(logits) * embedding.
  std::vector<float> SoftEmbeddings(const std::vector<float>& logits) {
    const int64_t hidden = loaded_.model->spec().hidden_size;
    const TensorFile file(TQ_TEST_DATA "/models/diffusion_gemma/model.safetensors");
    const std::vector<float> table = file.Floats("model.decoder.embed_tokens.weight");
    const auto tokens = static_cast<int64_t>(logits.size()) / vocab();
    std::vector<float> out(static_cast<size_t>(tokens * hidden));
    for (int64_t t = 0; t < tokens; ++t) {
      const float* row = logits.data() + t * vocab();
      double sum = 0;
      for (int64_t id = 0; id < vocab(); ++id) sum += std::exp(static_cast<double>(row[id]));
      for (int64_t i = 0; i < hidden; ++i) {
        double value = 0;
        for (int64_t id = 0; id < vocab(); ++id) {
          const double weight = table[static_cast<size_t>(id * hidden + i)];
          value += std::exp(static_cast<double>(row[id])) / sum * weight;
        }
        out[static_cast<size_t>(t * hidden + i)] =
            static_cast<float>(value * static_cast<double>(loaded_.model->spec().embed_scale));
      }
    }
    return out;
  }

 private:
  int64_t vocab() const { return loaded_.model->spec().vocab_size; }
  const Loaded& loaded_;
  std::vector<int32_t> pages_;
  std::unique_ptr<KvCache> cache_;
};

TEST(Diffusion, DenoisingPassesMatchTheReference) {
  const std::string folder = TQ_TEST_DATA "/models/diffusion_gemma";
  const TensorFile expected(folder + "/expected.safetensors");
  const std::vector<int32_t> prompt = expected.Ids("tokens");
  const std::vector<float> want = expected.Floats("logits");
  const std::vector<float> want_soft = expected.Floats("logits_self_conditioned");
  for (const BackendChoice& choice : AvailableBackends()) {
    const auto loaded =
        LoadOn(folder, choice.backend,
               {.num_threads = 2, .activations = ActivationMode::kF32, .isa = choice.isa});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    Canvas canvas(*loaded);
    canvas.Run(prompt, 0, true, {});
    const auto start = static_cast<int64_t>(prompt.size());
    const std::vector<float> first = canvas.Run(expected.Ids("canvas"), start, false, {});
    EXPECT_LE(MaxDifference(first, want), kTolerance * StandardDeviation(want)) << choice.isa;
    const std::vector<float> soft = canvas.SoftEmbeddings(first);
    const std::vector<float> second = canvas.Run(expected.Ids("canvas"), start, false, soft);
    EXPECT_LE(MaxDifference(second, want_soft), kTolerance * StandardDeviation(want_soft))
        << choice.isa;
  }
}

}  // namespace
}  // namespace tq::test
