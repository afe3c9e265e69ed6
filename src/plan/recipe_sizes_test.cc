// Sizes of conversions that were not made, against conversions that are.
#include "plan/recipe_sizes.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "plan/sized_model.h"
#include "quantize/convert.h"
#include "quantize/recipe.h"
#include "support/checkpoint.h"

namespace tq::test {
namespace {

TEST(RecipeSizes, AreThoseOfTheConversions) {
  const std::string folder = testing::TempDir() + "tq_recipes_" + std::to_string(::getpid());
  const auto backend = MakeBackend("", {.num_threads = 1, .isa = ""});
  ASSERT_TRUE(backend.ok());
  for (const char* name : {"llama", "qwen3_moe", "qwen3_5", "deepseek_v3"}) {
    const auto source = OpenSource(std::string(TQ_TEST_DATA "/models/") + name);
    ASSERT_TRUE(source.ok());
    const auto sized = SizeModel(**source, **backend);
    ASSERT_TRUE(sized.ok()) << sized.status().message();
    const auto sizes = SizeRecipes(**source, sized->model->spec(), *sized->backend);
    ASSERT_TRUE(sizes.ok()) << sizes.status().message();
    EXPECT_GE(sizes->size(), 3u);
    double bits = 100;
    for (const RecipeSize& size : *sizes) {
      SCOPED_TRACE(std::string(name) + " " + size.name);
      EXPECT_LE(size.matrix_bits, bits + 0.1);
      bits = size.matrix_bits;
      ConvertOptions options;
      options.num_threads = 1;
      options.rounding = Rounding::kRms;
      options.settings = WithRecipe(options.settings, *ParseRecipe(size.name));
      std::filesystem::remove_all(folder);
      const auto converted = Convert(**source, folder, options);
      ASSERT_TRUE(converted.ok()) << converted.status().message();
      EXPECT_EQ(size.file_bytes, converted->output_bytes);
      const auto result = OpenSource(folder);
      ASSERT_TRUE(result.ok()) << result.status().message();
      const auto after = SizeModel(**result, **backend);
      ASSERT_TRUE(after.ok()) << after.status().message();
      const auto expected =
          static_cast<double>(after->model->prepared_bytes() + after->float_bytes);
      EXPECT_NEAR(static_cast<double>(size.prepared_bytes), expected, 0.03 * expected);
      const auto decode = static_cast<double>(after->model->decode_bytes());
      EXPECT_NEAR(static_cast<double>(size.decode_bytes), decode, 0.05 * decode + 8192);
      const auto experts = static_cast<double>(after->model->expert_bytes());
      EXPECT_NEAR(static_cast<double>(size.expert_bytes), experts, 0.03 * experts);
      EXPECT_NEAR(static_cast<double>(size.expert_decode_bytes),
                  experts * after->model->expert_share(), 0.03 * experts);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(RecipeSizes, ATurboQuantCheckpointIsConvertedAlready) {
  const auto backend = MakeBackend("", {.num_threads = 1, .isa = ""});
  ASSERT_TRUE(backend.ok());
  const auto source = OpenSource(TQ_TEST_DATA "/turboquant/dense_b3");
  ASSERT_TRUE(source.ok());
  const auto sized = SizeModel(**source, **backend);
  ASSERT_TRUE(sized.ok());
  const auto sizes = SizeRecipes(**source, sized->model->spec(), *sized->backend);
  EXPECT_EQ(sizes.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tq::test
