#include "sampling/params.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace tq {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(SamplingParams, ValidateNamesTheField) {
  EXPECT_TRUE(SamplingParams{}.Validate(10).ok());
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    const Status status = params.Validate(10);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(message([](auto& p) { p.top_p = 0.0f; }), "top_p: expected (0, 1] (1 is off), found 0");
  EXPECT_NE(message([](auto& p) { p.top_p = kNan; }).find("top_p"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.temperature = -1; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.temperature = kInf; }).find("temperature"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.top_k = -1; }).find("top_k"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.min_p = 1.5f; }).find("min_p"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.repetition_penalty = 0; }).find("repetition_penalty"),
            std::string::npos);
  EXPECT_NE(message([](auto& p) { p.repetition_context = -1; }).find("repetition_context"),
            std::string::npos);
  EXPECT_EQ(message([](auto& p) {
              p.logit_bias = {{10, 1.0f}};
            }),
            "logit_bias: expected ids in [0, 10), found 10");
  EXPECT_NE(message([](auto& p) { p.logit_bias = {{3, kNan}}; }).find("id 3"), std::string::npos);
}

TEST(SamplingParams, ValidateNamesTheNewerFields) {
  const auto message = [](auto change) {
    SamplingParams params;
    change(params);
    return params.Validate(10).message();
  };
  EXPECT_EQ(message([](auto& p) { p.typical_p = 0; }),
            "typical_p: expected (0, 1] (1 is off), found 0");
  EXPECT_NE(message([](auto& p) { p.xtc_probability = 2; }).find("xtc_pro"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.xtc_threshold = -1; }).find("xtc_thr"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.presence_penalty = kNan; }).find("pres"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.frequency_penalty = kInf; }).find("freq"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.penalty_context = -2; }).find("penalty_c"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.dry_multiplier = -1; }).find("dry_mul"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.dry_base = 0.5f; }).find("dry_base"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.dry_allowed_length = 0; }).find("dry_all"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.dry_context = -2; }).find("dry_con"), std::string::npos);
  EXPECT_EQ(message([](auto& p) {
              p.bad_words = {{1}, {2, 10}};
            }),
            "bad_words[1]: expected ids in [0, 10), found 10");
  EXPECT_EQ(message([](auto& p) { p.dry_breakers = {{}}; }),
            "dry_breakers[0]: expected 1 to 1024 ids, found 0");
  EXPECT_EQ(message([](auto& p) {
              p.order = {SamplerStep::kTopP, SamplerStep::kXtc, SamplerStep::kTopP};
            }),
            "order: expected every sampler once, found top_p again");
}

TEST(SamplingParams, AnOrderIsReadFromText) {
  const auto order = ParseSamplerOrder("temperature;typ_p,top_k");
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(*order, (std::vector<SamplerStep>{SamplerStep::kTemperature, SamplerStep::kTypicalP,
                                              SamplerStep::kTopK}));
  EXPECT_EQ(ParseSamplerOrder("top_k;mirostat").status().message(),
            "expected top_k, typical_p, top_p, min_p, xtc or temperature, found \"mirostat\"");
  EXPECT_FALSE(ParseSamplerOrder("top_k;top_k").ok());
}

}  // namespace
}  // namespace tq
