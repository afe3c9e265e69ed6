// The one-answer promise over every architecture and every format of the KV cache: each row of
// logits that is sampled from has the same bits alone, in company, in chunks of any size, after
// reuse of what the memory has and after a restart from the disk. TQ_WHOLE_MATRIX=1 takes all
// formats and both modes; without it each model gets a few.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/checkpoint.h"
#include "support/recording_model.h"
#include "weights/checkpoint_content.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;
using Rows = RecordingModel::Rows;

struct Case {
  std::string model;
  ActivationMode mode;
  std::string kv;
  int64_t kv_min_tokens = 0;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.model << " " << c.kv; }

std::string Name(const Case& c) {
  std::string name = c.model + (c.mode == ActivationMode::kF32 ? "_f32_" : "_int8_") + c.kv;
  if (c.kv_min_tokens > 0) name += "_exact";
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

// Neighbours are often of the same model: the last one stays.
const Loaded& LoadedModel(const Case& c) {
  static std::pair<std::string, Loaded> last;
  const std::string key = c.model + (c.mode == ActivationMode::kF32 ? " f32" : " int8");
  if (last.first == key) return last.second;
  last = {};
  auto loaded =
      LoadOn(TQ_TEST_DATA "/" + c.model, "", {.num_threads = 1, .activations = c.mode, .isa = ""});
  TQ_CHECK(loaded.ok());
  last = {key, std::move(*loaded)};
  return last.second;
}

class OneAnswer : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kAnswer = 9;

  void SetUp() override {
    loaded_ = &LoadedModel(GetParam());
    folder_ = testing::TempDir() + "one_answer_" + Name(GetParam());
    fs::remove_all(folder_);
    // Over two borders of pages; its first 100 ids and others; a short one.
    prompts_ = {Prompt(150, 0), Prompt(140, 1), Prompt(37, 2)};
    std::copy_n(prompts_[0].begin(), 100, prompts_[1].begin());
    for (const Ids& prompt : prompts_) {
      EngineOptions options = Options();
      options.prefix_cache = false;
      want_.emplace_back();
      Ask(options, {prompt}, want_.back());
    }
    all_ = Union({0, 1, 2});
  }
  void TearDown() override { fs::remove_all(folder_); }

  Ids Prompt(int length, int salt) const {
    const int vocab = static_cast<int>(std::min<int64_t>(loaded_->model->spec().vocab_size, 300));
    Ids ids;
    for (int i = 0; i < length; ++i) ids.push_back((i * 37 + salt * 101 + i * i) % (vocab - 3) + 3);
    return ids;
  }
  EngineOptions Options() const {
    EngineOptions options;
    options.max_context = 192;
    options.kv_tokens = 3 * 192;
    options.max_sequences = 3;
    options.prefill_chunk = 512;
    options.kv = KvSettingsFor(*loaded_->backend, GetParam().kv, GetParam().kv_min_tokens);
    return options;
  }
  std::unique_ptr<Engine> Open(const EngineOptions& options, Rows& rows) const {
    auto engine = Engine::Create(std::make_unique<RecordingModel>(*loaded_, rows), options);
    TQ_CHECK(engine.ok());
    return std::move(*engine);
  }
  // All at once; returns how many tokens came from a cache.
  static int64_t Ask(Engine& engine, const std::vector<Ids>& prompts) {
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (const Ids& prompt : prompts) {
      GenerateRequest request;
      request.prompt = prompt;
      request.max_tokens = kAnswer;
      auto stream = engine.Submit(std::move(request));
      TQ_CHECK(stream.ok());
      streams.push_back(*stream);
    }
    int64_t cached = 0;
    for (const auto& stream : streams) {
      while (stream->Next()) {
      }
      EXPECT_EQ(stream->finish_reason(), FinishReason::kLength);
      cached += stream->stats().cached_tokens;
    }
    return cached;
  }
  int64_t Ask(const EngineOptions& options, const std::vector<Ids>& prompts, Rows& rows) const {
    return Ask(*Open(options, rows), prompts);
  }
  Rows Union(const std::vector<size_t>& which) const {
    Rows out;
    for (const size_t i : which) out.insert(want_[i].begin(), want_[i].end());
    return out;
  }

  const Loaded* loaded_ = nullptr;
  std::string folder_;
  std::vector<Ids> prompts_;
  std::vector<Rows> want_;  // of each prompt alone
  Rows all_;
};

// CN-05: a greedy answer does not depend on its company.
TEST_P(OneAnswer, WhateverElseHappens) {
  for (const Rows& rows : want_) ASSERT_EQ(rows.size(), static_cast<size_t>(kAnswer));
  EngineOptions options = Options();
  options.prefix_cache = false;
  Rows company;
  EXPECT_EQ(Ask(options, prompts_, company), 0);
  EXPECT_TRUE(company == all_) << "in company";

  options.prefill_chunk = 13;
  Rows chunked;
  EXPECT_EQ(Ask(options, prompts_, chunked), 0);
  EXPECT_TRUE(chunked == all_) << "in chunks";

  options = Options();
  options.prefill_chunk = 64;
  Rows reused;
  const auto engine = Open(options, reused);
  Ask(*engine, {prompts_[0]});
  EXPECT_TRUE(reused == want_[0]) << "before reuse";
  reused.clear();
  EXPECT_GE(Ask(*engine, {prompts_[0]}), 128);
  EXPECT_TRUE(reused == want_[0]) << "after reuse";
  reused.clear();
  EXPECT_GE(Ask(*engine, {prompts_[1], prompts_[2]}), 64);
  EXPECT_TRUE(reused == Union({1, 2})) << "after reuse of a part";

  options.disk_cache = {.folder = folder_,
                        .min_tokens = 64,
                        .save_every = 64,
                        .content = CheckpointContent(*loaded_->source)};
  Rows written;
  Ask(options, {prompts_[0]}, written);
  EXPECT_TRUE(written == want_[0]) << "while the disk cache is written";
  // What is read is the whole of one prompt's pages, and the beginning of another's.
  for (const size_t i : {0, 1}) {
    Rows restored;
    const auto again = Open(options, restored);
    EXPECT_GE(Ask(*again, {prompts_[i], prompts_[2]}), i == 0 ? 128 : 64);
    EXPECT_TRUE(restored == Union({i, 2})) << "after a restart, prompt " << i;
    EXPECT_EQ(again->stats().disk_hits, 1);
    EXPECT_EQ(again->stats().disk_dropped_files, 0);
  }
}

std::vector<Case> Cases() {
  std::vector<std::string> models;
  for (const char* folder : {"models", "turboquant"}) {
    for (const std::string& name : FolderNames(std::string(TQ_TEST_DATA "/") + folder)) {
      const std::string model = std::string(folder) + "/" + name;
      if (fs::exists(TQ_TEST_DATA "/" + model + "/config.json")) models.push_back(model);
    }
  }
  const bool whole = std::getenv("TQ_WHOLE_MATRIX") != nullptr;
  const std::vector<std::pair<std::string, int64_t>> formats = {
      {"f16", 0},     {"bf16", 0},     {"int8", 0},    {"int8", 70},
      {"tq8/tq3", 0}, {"tq8/tq3", 70}, {"tq4/tq4", 0}, {"tq4/tq4", 70}};
  std::vector<Case> out;
  for (const std::string& model : models) {
    for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kF32}) {
      for (const auto& [kv, min_tokens] : formats) {
        const bool quick = mode == ActivationMode::kInt8
                               ? min_tokens > 0 || kv == "bf16" || kv == "tq4/tq4"
                               : kv == "tq8/tq3" && min_tokens > 0;
        if (whole || quick) out.push_back({model, mode, kv, min_tokens});
      }
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, OneAnswer, testing::ValuesIn(Cases()),
                         [](const auto& param) { return Name(param.param); });

}  // namespace
}  // namespace tq::test
