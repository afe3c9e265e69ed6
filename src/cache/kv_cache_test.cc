#include "cache/kv_cache.h"

#include <cstring>

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(KvCache, HandsOutLowestPagesAndTakesThemBack) {
  const KvLayout layout{KvFormat::kF16, 2, 64, 64};
  auto cache = KvCache::Create({{{layout}, 0}, {{layout}, 10}}, 4, 2);
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(cache->bytes_per_page(), 2 * 2 * 2 * 64 * 64 * 2);
  std::vector<int32_t> a;
  std::vector<int32_t> b;
  EXPECT_TRUE(cache->Allocate(3, a));
  EXPECT_EQ(a, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_FALSE(cache->Allocate(2, b));
  EXPECT_TRUE(b.empty());
  cache->Free(a);
  EXPECT_EQ(cache->free_pages(), 4);
  EXPECT_TRUE(cache->Allocate(1, b));
  EXPECT_EQ(b, std::vector<int32_t>{0});
}

TEST(KvCache, HandsOutSlotsLowestFirst) {
  auto cache = KvCache::Create({{{}, 10}, {{}, 3}}, 0, 2);
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ(cache->bytes_per_slot(), 13 * 4);
  EXPECT_EQ(cache->AllocateSlot(), 0);
  EXPECT_EQ(cache->AllocateSlot(), 1);
  EXPECT_EQ(cache->AllocateSlot(), -1);
  cache->FreeSlot(0);
  EXPECT_EQ(cache->AllocateSlot(), 0);
  const StateRef state = cache->layer(0).State(4);
  EXPECT_EQ(state.state_stride, 10);
  EXPECT_EQ(state.base - cache->layer(0).State(0).base, 4);
}

TEST(KvCache, CopiesPagesAndSlotsInEveryLayer) {
  const KvLayout small{KvFormat::kF16, 1, 2, 2};
  const KvLayout large{KvFormat::kF32, 2, 4, 2};
  auto cache = KvCache::Create({{{small, large}, 3}, {{}, 0}, {{large}, 5}}, 3, 2);
  ASSERT_TRUE(cache.ok());
  std::vector<int32_t> pages;
  ASSERT_TRUE(cache->Allocate(3, pages));
  const auto fill = [&](LayerCache::Paged& paged, int value) {
    std::memset(paged.pages.data(), value, paged.pages.size());
    std::memset(paged.pages.data() + paged.layout.page_bytes(), value + 1,
                static_cast<size_t>(paged.layout.page_bytes()));
  };
  const auto expect = [&](const LayerCache::Paged& paged, int value) {
    const int64_t bytes = paged.layout.page_bytes();
    for (int64_t i = 0; i < 3 * bytes; ++i) {
      const int want = i < bytes ? value : value + 1;  // page 1 was copied to page 2
      ASSERT_EQ(paged.pages.data()[i], static_cast<std::byte>(want)) << i;
    }
  };
  fill(cache->layer(0).paged[0], 10);
  fill(cache->layer(0).paged[1], 20);
  fill(cache->layer(2).paged[0], 30);
  cache->CopyPage(1, 2);
  expect(cache->layer(0).paged[0], 10);
  expect(cache->layer(0).paged[1], 20);
  expect(cache->layer(2).paged[0], 30);
  EXPECT_TRUE(cache->has_state());
  for (const size_t layer : {0, 2}) {
    const StateRef state = cache->layer(layer).State(0);
    for (int64_t i = 0; i < state.state_stride; ++i) state.base[i] = static_cast<float>(i + 1);
  }
  cache->CopySlot(0, 1);
  for (const size_t layer : {0, 2}) {
    const StateRef state = cache->layer(layer).State(0);
    for (int64_t i = 0; i < 2 * state.state_stride; ++i) {
      EXPECT_EQ(state.base[i], static_cast<float>(i % state.state_stride + 1));
    }
  }
}

TEST(KvCache, PagesForRoundsUp) {
  EXPECT_EQ(KvCache::PagesFor(0), 0);
  EXPECT_EQ(KvCache::PagesFor(1), 1);
  EXPECT_EQ(KvCache::PagesFor(64), 1);
  EXPECT_EQ(KvCache::PagesFor(65), 2);
}

// The first pages of a sequence, by their place, have a slot; the slot goes with the last holder.
TEST(KvCache, ExactPages) {
  KvSettings settings;
  settings.k = settings.v = KvFormat::kTq4;
  settings.min_tokens = 70;
  const KvLayout layout{settings, 2, 64, 64, KvValues::kOwn};
  EXPECT_EQ(layout.num_exact_pages(), 2);
  const KvLayout exact = layout.exact_layout();
  EXPECT_EQ(exact.page_bytes(), 2 * 2 * 64 * 64 * 2);
  EXPECT_EQ(KvCache::BytesPerExactPage({{{layout}}}), exact.page_bytes());
  auto cache = KvCache::Create({{{layout}}}, 8, 1, 3);
  ASSERT_TRUE(cache.ok());
  const LayerCache::Paged& paged = cache->layer(0).paged[0];
  std::vector<int32_t> a, b;
  ASSERT_TRUE(cache->Allocate(3, a));
  for (size_t i = 0; i < 3; ++i) {
    const int64_t bytes = i < 2 ? exact.page_bytes() : layout.page_bytes();
    EXPECT_EQ(static_cast<int64_t>(paged.Page(a[i]).size()), bytes) << i;
  }
  EXPECT_FALSE(cache->Allocate(2, b));  // a slot short
  EXPECT_TRUE(b.empty());
  ASSERT_TRUE(cache->Allocate(1, b));
  std::memset(paged.Page(a[1]).data(), 7, paged.Page(a[1]).size());
  std::vector<int32_t> copy;
  EXPECT_FALSE(cache->Allocate(1, copy, 1));
  cache->Hold(a[0]);
  cache->Drop(a[0]);
  EXPECT_FALSE(cache->Allocate(1, copy, 1));  // still held
  cache->Drop(a[0]);
  ASSERT_TRUE(cache->Allocate(1, copy, 1));
  cache->CopyPage(a[1], copy[0]);
  EXPECT_EQ(
      std::memcmp(paged.Page(a[1]).data(), paged.Page(copy[0]).data(), paged.Page(copy[0]).size()),
      0);
}

}  // namespace
}  // namespace tq
