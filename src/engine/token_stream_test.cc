#include "engine/token_stream.h"

#include <thread>

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(TokenStream, DeliversInOrderThenTheEnd) {
  TokenStream stream(std::make_shared<Wakeup>());
  std::thread engine([&] {
    for (int32_t id = 0; id < 500; ++id) stream.Push(id);
    stream.Finish(FinishReason::kLength, Status::Ok(), {.generated_tokens = 500});
  });
  for (int32_t id = 0; id < 500; ++id) ASSERT_EQ(stream.Next(), id);
  EXPECT_EQ(stream.Next(), std::nullopt);
  EXPECT_EQ(stream.Next(), std::nullopt);
  EXPECT_EQ(stream.finish_reason(), FinishReason::kLength);
  EXPECT_EQ(stream.stats().generated_tokens, 500);
  engine.join();
}

TEST(TokenStream, FullUntilOneIsRead) {
  const auto wakeup = std::make_shared<Wakeup>();
  TokenStream stream(wakeup);
  const auto capacity = static_cast<int32_t>(TokenStream::kCapacity);
  for (int32_t id = 0; id < capacity; ++id) {
    EXPECT_FALSE(stream.full());
    stream.Push(id);
  }
  EXPECT_TRUE(stream.full());
  EXPECT_EQ(stream.Next(), 0);
  EXPECT_FALSE(stream.full());
  wakeup->Wait();  // room was announced
  stream.Push(capacity);
  for (int32_t id = 1; id <= capacity; ++id) ASSERT_EQ(stream.Next(), id);
}

TEST(TokenStream, CancelWakesTheEngineAndKeepsWhatWasPushed) {
  const auto wakeup = std::make_shared<Wakeup>();
  TokenStream stream(wakeup);
  stream.Push(5);
  EXPECT_FALSE(stream.cancelled());
  stream.Cancel();
  wakeup->Wait();
  EXPECT_TRUE(stream.cancelled());
  stream.Finish(FinishReason::kCancelled, Status::Ok(), {});
  stream.Finish(FinishReason::kError, Internal("late"), {});
  EXPECT_EQ(stream.Next(), 5);
  EXPECT_EQ(stream.Next(), std::nullopt);
  EXPECT_EQ(stream.finish_reason(), FinishReason::kCancelled);
  EXPECT_TRUE(stream.status().ok());
}

TEST(TokenStream, CarriesTheError) {
  TokenStream stream(std::make_shared<Wakeup>());
  EXPECT_EQ(stream.finish_reason(), FinishReason::kNone);
  stream.Finish(FinishReason::kError, Internal("disk gone"), {});
  EXPECT_EQ(stream.Next(), std::nullopt);
  EXPECT_EQ(stream.status().message(), "disk gone");
}

TEST(FinishReasonName, NamesAll) {
  EXPECT_EQ(FinishReasonName(FinishReason::kNone), "none");
  EXPECT_EQ(FinishReasonName(FinishReason::kStop), "stop");
  EXPECT_EQ(FinishReasonName(FinishReason::kLength), "length");
  EXPECT_EQ(FinishReasonName(FinishReason::kCancelled), "cancelled");
  EXPECT_EQ(FinishReasonName(FinishReason::kError), "error");
}

// A reader that never blocks: it is called once each time that it found nothing.
TEST(TokenStream, CallsItsListenerWhenThereIsSomethingNew) {
  TokenStream stream(std::make_shared<Wakeup>());
  int calls = 0;
  stream.SetListener([&calls] { ++calls; });
  EXPECT_EQ(calls, 0);
  stream.Push(7);
  stream.Push(8);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(stream.TryNext(), 7);
  EXPECT_EQ(stream.TryNext(), 8);
  EXPECT_FALSE(stream.at_end());
  EXPECT_EQ(stream.TryNext(), std::nullopt);
  stream.Push(9);
  EXPECT_EQ(calls, 2);
  stream.Finish(FinishReason::kStop, Status::Ok(), {});
  EXPECT_EQ(calls, 2) << "it has not read yet";
  EXPECT_EQ(stream.TryNext(), 9);
  EXPECT_TRUE(stream.at_end());
  EXPECT_EQ(stream.TryNext(), std::nullopt);
}

TEST(TokenStream, AListenerThatComesLateIsCalledAtOnce) {
  TokenStream stream(std::make_shared<Wakeup>());
  stream.Finish(FinishReason::kCancelled, Status::Ok(), {});
  int calls = 0;
  stream.SetListener([&calls] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(stream.at_end());
}

}  // namespace
}  // namespace tq
