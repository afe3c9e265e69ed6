// The disk prompt cache on real blocks: an answer that goes on from an earlier process' records has
// the bits of a cold one, whatever kinds of layers a model has.
#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/checkpoint.h"
#include "support/recording_model.h"
#include "weights/checkpoint_content.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string model;
  ActivationMode mode;
};

class DiskCacheProperty : public testing::TestWithParam<Case> {
 protected:
  using Rows = RecordingModel::Rows;

  void SetUp() override {
    auto loaded = LoadOn(TQ_TEST_DATA "/" + GetParam().model, "",
                         {.num_threads = 1, .activations = GetParam().mode, .isa = ""});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    loaded_ = std::move(*loaded);
    std::string name = GetParam().model;
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = testing::TempDir() + "disk_property_" + name +
              (GetParam().mode == ActivationMode::kF32 ? "_f32" : "_int8");
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Engine> Open(Rows& rows, bool with_disk = true) {
    EngineOptions options;
    options.max_context = 256;
    options.max_sequences = 1;
    options.prefill_chunk = 64;
    options.kv = KvSettingsFor(*loaded_.backend);
    if (with_disk) {
      options.disk_cache = {.folder = folder_,
                            .min_tokens = 64,
                            .save_every = 64,
                            .content = CheckpointContent(*loaded_.source)};
    }
    auto engine = Engine::Create(std::make_unique<RecordingModel>(loaded_, rows), options);
    TQ_CHECK(engine.ok());
    return std::move(*engine);
  }
  struct Outcome {
    std::vector<int32_t> ids;
    int64_t cached;
  };
  static Outcome Ask(Engine& engine, const std::vector<int32_t>& prompt) {
    GenerateRequest request;
    request.prompt = prompt;
    request.max_tokens = 13;
    auto stream = engine.Submit(std::move(request));
    TQ_CHECK(stream.ok());
    Outcome out;
    while (const auto id = (*stream)->Next()) out.ids.push_back(*id);
    out.cached = (*stream)->stats().cached_tokens;
    return out;
  }

  Loaded loaded_;
  std::string folder_;
};

// CA-05, CA-08: also the logits, not only the ids.
TEST_P(DiskCacheProperty, AfterARestartIsAlone) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < 150; ++i) prompt.push_back((i * 37 + i * i) % 300 + 3);
  for (int turn = 0; turn < 3; ++turn) {
    Rows cold_rows;
    const Outcome cold = Ask(*Open(cold_rows, false), prompt);
    Rows rows;
    const auto engine = Open(rows);
    const Outcome warm = Ask(*engine, prompt);
    EXPECT_EQ(warm.ids, cold.ids) << turn;
    EXPECT_TRUE(rows == cold_rows) << turn;
    // All but the new message and the answer's last id, which was never computed.
    const auto length = static_cast<int64_t>(prompt.size());
    EXPECT_EQ(warm.cached, turn == 0 ? 0 : length - 11) << turn;
    EXPECT_EQ(engine->stats().disk_hits, turn == 0 ? 0 : 1);
    prompt.insert(prompt.end(), warm.ids.begin(), warm.ids.end());
    for (int i = 0; i < 10; ++i) prompt.push_back(20 + i + turn);
  }
}

TEST(DiskCacheContent, OtherWeightsAreAnotherCheckpoint) {
  std::set<std::string> contents;
  for (const char* model : {"turboquant/dense_b2", "turboquant/dense_b3", "turboquant/dense_b4"}) {
    const auto loaded = LoadOn(std::string(TQ_TEST_DATA "/") + model, "",
                               {.num_threads = 1, .activations = ActivationMode::kInt8, .isa = ""});
    ASSERT_TRUE(loaded.ok());
    contents.insert(CheckpointContent(*loaded->source));
  }
  EXPECT_EQ(contents.size(), 3u);
}

std::string Name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.model;
  name += info.param.mode == ActivationMode::kF32 ? "_f32" : "_int8";
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::vector<Case> Cases() {
  std::vector<Case> out;
  for (const std::string& model : FolderNames(TQ_TEST_DATA "/models")) {
    out.push_back({"models/" + model, ActivationMode::kInt8});
  }
  for (const char* model : {"models/llama", "models/qwen3_next", "models/deepseek_v32"}) {
    out.push_back({model, ActivationMode::kF32});
  }
  for (const char* model : {"turboquant/hybrid_qwen3_5", "turboquant/dense_b3"}) {
    out.push_back({model, ActivationMode::kInt8});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, DiskCacheProperty, testing::ValuesIn(Cases()), Name);

}  // namespace
}  // namespace tq::test
