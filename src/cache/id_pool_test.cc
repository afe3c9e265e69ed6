#include "cache/id_pool.h"

#include <gtest/gtest.h>

namespace tq {
namespace {

TEST(IdPool, LowestFreeIdFirst) {
  IdPool pool(4);
  for (int32_t id = 0; id < 4; ++id) EXPECT_EQ(pool.Take(), id);
  EXPECT_EQ(pool.Take(), -1);
  for (const int32_t id : {3, 0, 2}) pool.Drop(id);
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_EQ(pool.Take(), 0);
  EXPECT_EQ(pool.Take(), 2);
  EXPECT_EQ(pool.Take(), 3);
  EXPECT_EQ(pool.Take(), -1);
}

TEST(IdPool, TheLastHolderFrees) {
  IdPool pool(2);
  const int32_t id = pool.Take();
  pool.Hold(id);
  pool.Hold(id);
  EXPECT_EQ(pool.holders(id), 3);
  pool.Drop(id);
  pool.Drop(id);
  EXPECT_EQ(pool.num_free(), 1);
  pool.Drop(id);
  EXPECT_EQ(pool.num_free(), 2);
  EXPECT_EQ(pool.holders(id), 0);
}

TEST(IdPoolDeathTest, AFreeIdHasNoHolderToDrop) {
  IdPool pool(2);
  EXPECT_DEATH(pool.Drop(1), "holders");
}

}  // namespace
}  // namespace tq
