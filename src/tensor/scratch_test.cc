#include "tensor/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

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

}  // namespace
}  // namespace tq
