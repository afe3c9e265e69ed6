#include "base/json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tq {
namespace {

TEST(ParseJson, RefusesWhatIsNotStrict) {
  for (const char* bad : {"", "{", "[1,]", "{\"a\":1,\"a\":2}", "NaN", "{\"a\":Infinity}", "[1] 2",
                          "1e999", "\"\xff\"", "{'a':1}"}) {
    const auto result = ParseJson(bad, "file.json");
    ASSERT_FALSE(result.ok()) << bad;
    EXPECT_EQ(result.status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(result.status().message().rfind("file.json: ", 0), 0u) << result.status().message();
    EXPECT_EQ(result.status().message().find('\n'), std::string::npos);
  }
}

TEST(ParseJson, BoundsTheDepth) {
  EXPECT_TRUE(ParseJson(std::string(100, '[') + std::string(100, ']'), "x").ok());
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '['), "x").ok());
  const auto deep = ParseJson(std::string(300, '[') + std::string(300, ']'), "x");
  EXPECT_NE(deep.status().message().find("256"), std::string::npos);
}

TEST(ParseJson, DuplicateKeyIsNamed) {
  const auto result = ParseJson("{\"x\":{\"k\":1,\"k\":1}}", "c.json");
  EXPECT_EQ(result.status().message(), "c.json: key \"k\" appears twice");
}

TEST(ParseOrderedJson, KeepsOrder) {
  const auto json = ParseOrderedJson("{\"z\":1,\"a\":2}", "x");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->dump(), "{\"z\":1,\"a\":2}");
}

TEST(ConfigReader, ReadsAndRemembers) {
  const Json json = *ParseJson(
      "{\"n\":3,\"f\":64.0,\"x\":1.5,\"b\":true,\"s\":\"t\",\"null\":null,\"left\":1,\"list\":["
      "\"a\"]}",
      "c");
  ConfigReader reader(json, "c");
  EXPECT_EQ(reader.Int("n", 0), 3);
  EXPECT_EQ(reader.Int("f", 0), 64);
  EXPECT_EQ(reader.Number("x", 0), 1.5);
  EXPECT_TRUE(reader.Bool("b", false));
  EXPECT_EQ(reader.String("s", ""), "t");
  EXPECT_EQ(reader.Int("null", 7), 7);
  EXPECT_EQ(reader.StringList("list"), std::vector<std::string>{"a"});
  EXPECT_EQ(reader.UnreadKeys(), std::vector<std::string>{"left"});
  EXPECT_TRUE(reader.status().ok());
}

TEST(ConfigReader, FirstErrorWins) {
  const Json json = *ParseJson("{\"n\":\"three\",\"big\":99}", "c");
  ConfigReader reader(json, "c");
  EXPECT_EQ(reader.Int("n", 5), 5);
  EXPECT_EQ(reader.RequiredInt("big", 1, 10), 1);
  EXPECT_EQ(reader.status().message(), "c: n: expected an integer, found \"three\"");
}

TEST(ConfigReader, RequiredAndRange) {
  const Json json = *ParseJson("{\"big\":99}", "c");
  ConfigReader reader(json, "c");
  reader.RequiredInt("big", 1, 10);
  EXPECT_EQ(reader.status().message(), "c: big: expected 1..10, found 99");
  ConfigReader missing(json, "c");
  missing.RequiredInt("gone", 1, 10);
  EXPECT_EQ(missing.status().message(), "c: gone is missing");
}

}  // namespace
}  // namespace tq
