#include "chat/stop_strings.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

struct Outcome {
  std::string text;
  bool stopped;
  bool operator==(const Outcome&) const = default;
};

Outcome Feed(const std::vector<std::string>& stops, std::string_view text, size_t piece) {
  StopStrings filter(stops);
  std::string out;
  for (size_t i = 0; i < text.size(); i += piece) out += filter.Push(text.substr(i, piece));
  out += filter.Finish();
  return {out, filter.stopped()};
}

TEST(StopStrings, SameResultForEveryCut) {
  struct Case {
    std::vector<std::string> stops;
    std::string text;
    Outcome expected;
  };
  const std::vector<Case> cases = {
      {{}, "all of it", {"all of it", false}},
      {{"\n\n"}, "one\n\ntwo", {"one", true}},
      {{"\n\n"}, "one\ntwo\n", {"one\ntwo\n", false}},
      {{"abc", "b"}, "xabc", {"xa", true}},  // "b" is complete first
      {{"bc", "abc"}, "xabc", {"x", true}},  // both end here: the longer one
      {{"aab"}, "aaaab!", {"aa", true}},     // overlapping beginnings
      {{"STOP", ""}, "a STO", {"a STO", false}},
      {{"<end>"}, "<end>", {"", true}},
  };
  for (const Case& c : cases) {
    for (size_t piece = 1; piece <= c.text.size(); ++piece) {
      EXPECT_EQ(Feed(c.stops, c.text, piece), c.expected) << c.text << " in pieces of " << piece;
    }
  }
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStop) {
  StopStrings filter({"\nUser:"});
  EXPECT_EQ(filter.Push("hello"), "hello");
  EXPECT_EQ(filter.Push(" you\nUs"), " you");
  EXPECT_EQ(filter.Push("ual"), "\nUsual");
  EXPECT_EQ(filter.Push("\nUser: next"), "");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.Push("more"), "");
  EXPECT_EQ(filter.Finish(), "");
}

}  // namespace
}  // namespace tq
