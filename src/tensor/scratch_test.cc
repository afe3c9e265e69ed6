#include "tensor/scratch.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(Scratch, AlignedDisjointAndReused) {
  Scratch scratch;
  float* a = scratch.Alloc<float>(100);
  float* b = scratch.Alloc<float>(3'000'000);  // larger than a chunk
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % Scratch::kAlign, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % Scratch::kAlign, 0u);
  std::memset(a, 1, 400);
  std::memset(b, 2, 12'000'000);
  EXPECT_EQ(reinterpret_cast<unsigned char*>(a)[399], 1);
  scratch.Reset();
  const size_t capacity = scratch.capacity_bytes();
  scratch.Alloc<float>(100);
  scratch.Alloc<float>(3'000'000);
  EXPECT_EQ(scratch.capacity_bytes(), capacity);
}

TEST(Scratch, ScopeReleases) {
  Scratch scratch;
  float* first = nullptr;
  {
    const ScratchScope scope(scratch);
    first = scratch.Alloc<float>(10);
  }
  EXPECT_EQ(scratch.Alloc<float>(10), first);
}

TEST(Scratch, OnlyOneBlockKnowsItsPeak) {
  Scratch scratch;
  const auto use = [&scratch] {
    const ScratchScope outer(scratch);
    scratch.Alloc<float>(500'000);
    {
      const ScratchScope inner(scratch);
      scratch.Alloc<float>(1'000'000);
    }
    scratch.Alloc<float>(200'000);
  };
  use();
  scratch.Reset();
  use();
  EXPECT_EQ(scratch.peak_bytes(), 6'000'000u);
  EXPECT_GE(scratch.capacity_bytes(), 6'000'000u);
  Scratch exact;
  ASSERT_TRUE(exact.Reserve(6'000'000));
  scratch = std::move(exact);
  use();
  EXPECT_EQ(scratch.capacity_bytes(), 6'000'000u);
  EXPECT_EQ(scratch.peak_bytes(), 6'000'000u);
  EXPECT_FALSE(scratch.Reserve(size_t{1} << 62));
  EXPECT_EQ(scratch.capacity_bytes(), 6'000'000u);
}

}  // namespace
}  // namespace tq
