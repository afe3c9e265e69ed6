#include "cache/disk_index.h"

#include <array>

#include <gtest/gtest.h>

namespace tq {
namespace {

DiskKey Key(uint8_t n) {
  DiskKey key;
  key.bytes[15] = n;
  return key;
}
DiskName Page(uint8_t n, uint8_t parent, int32_t num_tokens = kPageTokens) {
  return {Key(n), Key(parent), num_tokens, DiskKind::kPage};
}
DiskName State(uint8_t n, uint8_t parent) {
  return {Key(n), Key(parent), kPageTokens, DiskKind::kState};
}
std::vector<std::string> Names(const std::vector<DiskName>& names) {
  std::vector<std::string> out;
  for (const DiskName& name : names) out.push_back(name.FileName());
  return out;
}

TEST(DiskName, OneSpelling) {
  const DiskName name{DiskRootKey("x"), DiskRootKey("y"), 7, DiskKind::kState};
  const std::string file = name.FileName();
  const auto read = DiskName::Parse(file);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->FileName(), file);
  EXPECT_EQ(read->key, name.key);
  EXPECT_EQ(read->num_tokens, 7);
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(DiskName::Parse(file.substr(0, size))) << size;
  }
  std::string upper = file;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  for (const std::string& bad : {upper, file + "x", "." + file,
                                 DiskKeyHex(name.key) + "-" + DiskKeyHex(name.parent) + "-65.page",
                                 DiskKeyHex(name.key) + "-" + DiskKeyHex(name.parent) + "-00.page",
                                 std::string("about.txt"), std::string(300, 'a')}) {
    EXPECT_FALSE(DiskName::Parse(bad)) << bad;
  }
}

TEST(DiskIndex, WhatNothingFollowsGoesFirstAndTheOldestOfIt) {
  DiskIndex index;
  // 1 - 2 - 3 and 1 - 4: written in order, so that every parent is older.
  index.Add(Page(1, 0), 5000, 10);
  index.Add(Page(2, 1), 5000, 20);
  index.Add(Page(3, 2), 5000, 30);
  index.Add(Page(4, 1), 5000, 25);
  EXPECT_EQ(index.total_bytes(), 4 * 8192);
  EXPECT_EQ(Names(index.Oldest({})), Names({Page(4, 1)}));
  EXPECT_EQ(Names(index.Oldest(std::array{Key(4)})), Names({Page(3, 2)}));
  index.Touch(Page(4, 1), 40);
  EXPECT_EQ(Names(index.Oldest({})), Names({Page(3, 2)}));
  for (const DiskName& name : {Page(3, 2), Page(2, 1), Page(4, 1)}) {
    EXPECT_EQ(Names(index.Oldest({})), Names({name}));
    index.Remove(name);
  }
  EXPECT_EQ(Names(index.Oldest({})), Names({Page(1, 0)}));
  EXPECT_TRUE(index.Oldest(std::array{Key(1)}).empty());
  index.Remove(Page(1, 0));
  EXPECT_EQ(index.total_bytes(), 0);
}

TEST(DiskIndex, StatesOnTheWayGoBeforeTheEndThatIsInUse) {
  DiskIndex index;
  index.Add(Page(1, 0), 100, 10);
  index.Add(State(1, 0), 100, 11);
  index.Add(Page(2, 1), 100, 20);
  index.Add(State(2, 1), 100, 21);
  EXPECT_EQ(Names(index.Oldest({})), Names({State(1, 0)}));
  index.Remove(State(1, 0));
  EXPECT_EQ(Names(index.Oldest({})), Names({State(2, 1), Page(2, 1)}));
}

TEST(DiskIndex, AStateWithoutItsPageCanGo) {
  DiskIndex index;
  index.Add(State(7, 3), 100, 5);
  EXPECT_FALSE(index.Has(Key(7), DiskKind::kPage));
  EXPECT_EQ(Names(index.Oldest({})), Names({State(7, 3)}));
}

}  // namespace
}  // namespace tq
