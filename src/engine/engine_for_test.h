// What the engine's tests share: requests to a FakeModel, and a gate that holds the engine thread.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/fake_model.h"
#include "sampling/sampler.h"

namespace tq {

// Holds the engine thread inside a step.
class Gate {
 public:
  FakeModel::StepHook Hook() {
    return [this](const StepPlan&) {
      std::unique_lock lock(mutex_);
      ++entered_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return open_ || entered_ <= allowed_; });
    };
  }
  void WaitEntered(int step) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return entered_ >= step; });
  }
  // Lets the first `steps` steps pass.
  void Allow(int steps) {
    const std::lock_guard lock(mutex_);
    allowed_ = steps;
    changed_.notify_all();
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  int entered_ = 0;
  int allowed_ = 0;
  bool open_ = false;
};

inline std::unique_ptr<Engine> MakeEngine(const EngineOptions& options = {},
                                          FakeModel::StepHook hook = nullptr,
                                          bool recurrent = false) {
  auto engine =
      Engine::Create(std::make_unique<FakeModel>(4096, std::move(hook), recurrent), options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

inline std::vector<int32_t> Prompt(int64_t length, int32_t salt) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) {
    ids.push_back(static_cast<int32_t>((i * 31 + salt * 17 + i * i) % FakeModel::kVocab));
  }
  return ids;
}

inline GenerateRequest Request(int64_t prompt_length, int64_t max_tokens, int32_t salt = 0) {
  GenerateRequest request;
  request.prompt = Prompt(prompt_length, salt);
  request.max_tokens = max_tokens;
  return request;
}

inline std::shared_ptr<TokenStream> MustSubmit(Engine& engine, const GenerateRequest& request) {
  auto stream = engine.Submit(request);
  EXPECT_TRUE(stream.ok()) << stream.status().message();
  return stream.value();
}

struct AnswerTokens {
  std::vector<int32_t> ids;
  std::vector<TokenLogprobs> logprobs;  // zeros when the request asks for none
  bool operator==(const AnswerTokens&) const = default;
};

inline AnswerTokens ReadTokens(TokenStream& stream) {
  AnswerTokens answer;
  TokenLogprobs logprobs;
  while (const std::optional<int32_t> id = stream.Next(&logprobs)) {
    answer.ids.push_back(*id);
    answer.logprobs.push_back(logprobs);
  }
  return answer;
}

inline std::vector<int32_t> ReadAll(TokenStream& stream) { return ReadTokens(stream).ids; }

// What the engine must answer, without one. Not for stop ids, constraints and loops.
inline AnswerTokens AloneTokens(const GenerateRequest& request) {
  const Sampler sampler(request.sampling);
  SamplerScratch scratch;
  std::vector<int32_t> ids = request.prompt;
  AnswerTokens answer;
  while (static_cast<int64_t>(answer.ids.size()) < request.max_tokens) {
    std::vector<float> logits = FakeModel::LogitsAfter(ids);
    SamplerCall call;
    call.history = ids;
    call.prompt_tokens = request.prompt.size();
    call.position = static_cast<int64_t>(ids.size());
    call.num_logprobs = request.num_logprobs;
    const bool early = static_cast<int64_t>(answer.ids.size()) < request.min_tokens;
    if (early || request.ignore_end) call.forbidden = request.end_ids;
    const SampledToken token = sampler.Sample(logits, call, scratch);
    if (std::find(request.end_ids.begin(), request.end_ids.end(), token.id) !=
        request.end_ids.end()) {
      break;
    }
    ids.push_back(token.id);
    answer.ids.push_back(token.id);
    answer.logprobs.push_back(token.logprobs);
  }
  return answer;
}

inline std::vector<int32_t> Alone(const GenerateRequest& request) {
  return AloneTokens(request).ids;
}

// Any mixture of samplers, for a vocabulary of FakeModel::kVocab.
inline SamplingParams MixedSampling(std::mt19937& random) {
  const auto one_of = [&](auto off, auto on) { return random() % 3 == 0 ? on : off; };
  SamplingParams params;
  params.temperature = one_of(0.8f, 0.0f);
  params.seed = random() % 100;
  params.top_k = one_of(0, 20);
  params.top_p = one_of(1.0f, 0.9f);
  params.min_p = one_of(0.0f, 0.02f);
  params.typical_p = one_of(1.0f, 0.8f);
  params.xtc_probability = one_of(0.0f, 0.5f);
  params.xtc_threshold = 0.05f;
  params.repetition_penalty = one_of(1.0f, 1.2f);
  params.presence_penalty = one_of(0.0f, 0.5f);
  params.frequency_penalty = one_of(0.0f, 0.2f);
  params.penalize_prompt = random() % 2 == 0;
  params.dry_multiplier = one_of(0.0f, 0.8f);
  if (random() % 2 == 0) params.dry_breakers = {{5}, {7, 8}};
  if (random() % 4 == 0) params.bad_words = {{3}, {4, 5}};
  if (random() % 4 == 0) params.logit_bias = {{11, 2.0f}, {12, -100.0f}};
  if (random() % 4 == 0) params.order = {SamplerStep::kTemperature, SamplerStep::kTopP};
  return params;
}

}  // namespace tq
