#include "base/read_ahead.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"

namespace tq {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

size_t AskedAfterAWhile(const ReadAhead& ahead, size_t expected) {
  for (int i = 0; i < 1000 && ahead.asked() < expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ahead.asked();
}

TEST(ReadAhead, StaysWithinItsWindow) {
  const std::string path = testing::TempDir() + "/read_ahead_file";
  ASSERT_TRUE(WriteFile(path, std::string(40 * kMegabyte, 'x')).ok());
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  const auto bytes = (*file)->bytes();
  ReadAhead ahead({bytes.subspan(3, 20 * kMegabyte), {}, bytes.subspan(20 * kMegabyte)},
                  16 * kMegabyte);
  EXPECT_EQ(AskedAfterAWhile(ahead, 16 * kMegabyte), 16 * kMegabyte);
  ahead.Used(5 * kMegabyte);
  EXPECT_EQ(AskedAfterAWhile(ahead, 20 * kMegabyte), 20 * kMegabyte);
  ahead.Used(100 * kMegabyte);
  EXPECT_EQ(AskedAfterAWhile(ahead, 40 * kMegabyte), 40 * kMegabyte);
  EXPECT_EQ(bytes[39 * kMegabyte], std::byte{'x'});
}

// Whoever loads gives up in the middle: nothing waits.
TEST(ReadAhead, StopsAtOnce) {
  const std::string memory(64 * kMegabyte, 'x');
  const ReadAhead ahead({std::as_bytes(std::span(memory))}, 8 * kMegabyte);
}

}  // namespace
}  // namespace tq
