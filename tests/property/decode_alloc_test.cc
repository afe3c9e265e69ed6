// A steady decode step of a real model allocates nothing, on no thread: compressed KV caches, all
// kinds of layers, sampling and log probabilities.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "model/step_context.h"
#include "support/checkpoint.h"
#include "tensor/scratch.h"

namespace {
std::atomic<int64_t> allocations{0};
thread_local bool is_counted = true;  // not of the test's own thread
}  // namespace

// Not inlined: GCC 12 would pair a caller's `new` with our `free` and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (is_counted) allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tq::test {
namespace {

struct Case {
  const char* model;
  const char* kv;
  int64_t kv_min_tokens;
  ActivationMode mode = ActivationMode::kInt8;
};

constexpr int64_t kFirstStep = 8;
constexpr int64_t kLastStep = 140;  // two pages are opened in between

// Counts between two decode steps of all sequences.
class CountingModel final : public StepModel {
 public:
  // The first step waits until `all_there`, so that all sequences decode together.
  CountingModel(const Loaded& loaded, std::vector<int64_t>& counts,
                const std::atomic<bool>& all_there)
      : loaded_(loaded), counts_(counts), all_there_(all_there) {
    counts_.reserve(kLastStep + 100);
  }
  int64_t vocab_size() const override { return loaded_.model->spec().vocab_size; }
  int64_t max_position_embeddings() const override {
    return loaded_.model->spec().max_position_embeddings;
  }
  std::vector<CacheNeeds> Needs(const KvSettings& settings) const override {
    return loaded_.model->Needs(settings);
  }
  std::string Fingerprint(const KvSettings&) const override { return "test"; }
  void Forward(const StepPlan& plan, KvCache& cache, float* logits) override {
    all_there_.wait(false);
    if (plan.sequences.size() == 3 && plan.num_tokens() == 3) {
      if (counts_.size() < counts_.capacity()) counts_.push_back(allocations.load());
    }
    scratch_.Reset();
    StepContext step{
        .backend = *loaded_.backend, .scratch = scratch_, .plan = plan, .ropes = std::move(ropes_)};
    loaded_.model->Forward(step, cache, logits);
    ropes_ = std::move(step.ropes);
  }

 private:
  const Loaded& loaded_;
  std::vector<int64_t>& counts_;
  const std::atomic<bool>& all_there_;
  Scratch scratch_;
  std::vector<RopeTable> ropes_;
};

class DecodeAllocations : public testing::TestWithParam<Case> {};

TEST_P(DecodeAllocations, None) {
  is_counted = false;
  auto loaded = LoadOn(std::string(TQ_TEST_DATA "/") + GetParam().model, "",
                       {.num_threads = 2, .activations = GetParam().mode, .isa = ""});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EngineOptions options;
  options.max_context = 256;
  options.kv_tokens = 3 * 256;
  options.max_sequences = 3;
  options.kv = KvSettingsFor(*loaded->backend, GetParam().kv, GetParam().kv_min_tokens);
  std::vector<int64_t> counts;
  std::atomic<bool> all_there{false};
  auto engine =
      Engine::Create(std::make_unique<CountingModel>(*loaded, counts, all_there), options);
  ASSERT_TRUE(engine.ok());
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int i = 0; i < 3; ++i) {
    GenerateRequest request;
    for (int at = 0; at < 60 + i; ++at) request.prompt.push_back((at * 37 + i) % 300 + 3);
    request.max_tokens = kLastStep + 20;
    if (i > 0) {
      request.sampling.temperature = 1.0f;
      request.sampling.top_p = 0.9f;
      request.sampling.repetition_penalty = 1.1f;
      request.num_logprobs = 20;
    }
    auto stream = (*engine)->Submit(std::move(request));
    ASSERT_TRUE(stream.ok());
    streams.push_back(*stream);
  }
  all_there = true;
  all_there.notify_all();
  for (const auto& stream : streams) {
    while (stream->Next()) {
    }
  }
  engine->reset();
  ASSERT_GT(counts.size(), static_cast<size_t>(kLastStep));
  for (size_t i = kFirstStep; i < kLastStep; ++i) {
    ASSERT_EQ(counts[i + 1], counts[i]) << "in decode step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DecodeAllocations,
    testing::Values(Case{"models/llama", "f16", 0}, Case{"models/llama", "8/8", 64},
                    Case{"models/llama", "4/3", 0}, Case{"models/llama", "tq8/5", 0},
                    Case{"models/llama", "4/4", 64, ActivationMode::kF32},
                    Case{"models/gemma4_text", "4/3", 64}, Case{"models/gpt_oss_mxfp4", "8/4", 0},
                    Case{"models/deepseek_v32", "4/4", 64}, Case{"models/qwen3_next", "8/3", 64},
                    Case{"models/nemotron_h_moe", "4/4", 0}, Case{"models/kimi_k3", "8/8", 0},
                    Case{"models/qwen4_exp_text", "4/4", 0},
                    Case{"turboquant/moe_tq3a_tq2e", "3/3", 0}),
    [](const auto& param) {
      std::string name = std::string(param.param.model) + "_" + param.param.kv + "_" +
                         std::to_string(param.param.kv_min_tokens) +
                         (param.param.mode == ActivationMode::kF32 ? "_f32" : "");
      for (char& c : name) {
        if (c == '/') c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace tq::test
