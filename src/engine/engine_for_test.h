// What the engine's tests share: requests to a FakeModel, and a gate that holds the engine thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/fake_model.h"

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

inline std::vector<int32_t> ReadAll(TokenStream& stream) {
  std::vector<int32_t> ids;
  while (const std::optional<int32_t> id = stream.Next()) ids.push_back(*id);
  return ids;
}

inline std::vector<int32_t> Alone(const GenerateRequest& request) {
  return FakeModel::Continue(request.prompt, request.max_tokens, request.sampling);
}

}  // namespace tq
