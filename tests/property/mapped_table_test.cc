// The n-gram tables stay in the checkpoint's file: they cost no prepared memory, and the model
// needs no more than the file's mapping of the source that it came from.
#include <gtest/gtest.h>

#include "support/checkpoint.h"

namespace tq::test {
namespace {

TEST(MappedTable, IsNotPreparedAndOutlivesItsSource) {
  auto loaded = LoadOn(TQ_TEST_DATA "/models/qwen4_exp_text", "",
                       {.num_threads = 1, .activations = ActivationMode::kInt8, .isa = ""});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  int64_t table_bytes = 0;
  for (const SourceTensor& tensor : loaded->source->tensors()) {
    if (tensor.name.find(".ngram_embedding.") == std::string::npos) continue;
    table_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  EXPECT_GT(table_bytes, 0);
  EXPECT_EQ(loaded->model->mapped_bytes(), table_bytes);
  for (const Model::NamedWeight& weight : loaded->model->Weights()) {
    EXPECT_EQ(weight.name.find("ngram_embedding"), std::string::npos) << weight.name;
  }
  std::vector<int32_t> ids;
  for (int i = 0; i < 30; ++i) ids.push_back((i * 37) % 313 + 3);
  const std::vector<float> before = Logits(*loaded, ids);
  loaded->source.reset();
  EXPECT_EQ(Logits(*loaded, ids), before);
}

}  // namespace
}  // namespace tq::test
