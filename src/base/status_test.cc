#include "base/status.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("expected an even number, found " + std::to_string(x));
  return x / 2;
}

Result<int> Quarter(int x) {
  TQ_ASSIGN_OR_RETURN(const int half, Half(x));
  return Half(half);
}

TEST(Status, ContextIsPrependedAndCodeKept) {
  const Status status = Corrupt("expected 4, found 2").WithContext("layer 3");
  EXPECT_EQ(status.message(), "layer 3: expected 4, found 2");
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_TRUE(Status::Ok().WithContext("x").ok());
}

TEST(Result, PropagatesTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "expected an even number, found 3");
  EXPECT_EQ(Quarter(7).status().message(), "expected an even number, found 7");
}

}  // namespace
}  // namespace tq
