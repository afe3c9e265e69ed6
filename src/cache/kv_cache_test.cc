#include "cache/kv_cache.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(KvCache, HandsOutLowestPagesAndTakesThemBack) {
  const KvLayout layout{KvType::kF16, 2, 64, 64};
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

TEST(KvCache, PagesForRoundsUp) {
  EXPECT_EQ(KvCache::PagesFor(0), 0);
  EXPECT_EQ(KvCache::PagesFor(1), 1);
  EXPECT_EQ(KvCache::PagesFor(64), 1);
  EXPECT_EQ(KvCache::PagesFor(65), 2);
}

}  // namespace
}  // namespace tq
