#include "cache/kv_cache.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(KvCache, HandsOutLowestPagesAndTakesThemBack) {
  const KvLayout layout{KvType::kF16, 2, 64};
  auto cache = KvCache::Create({layout, layout}, 4);
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

TEST(KvCache, PagesForRoundsUp) {
  EXPECT_EQ(KvCache::PagesFor(0), 0);
  EXPECT_EQ(KvCache::PagesFor(1), 1);
  EXPECT_EQ(KvCache::PagesFor(64), 1);
  EXPECT_EQ(KvCache::PagesFor(65), 2);
}

}  // namespace
}  // namespace tq
