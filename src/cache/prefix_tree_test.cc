#include "cache/prefix_tree.h"

#include <numeric>

#include <gtest/gtest.h>

namespace tq {
namespace {

std::vector<int32_t> Ids(int64_t count, int32_t first) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

PrefixTree MakeTree(int64_t pages, PageHash hash = HashPage) {
  auto tree = PrefixTree::Create(pages, hash);
  EXPECT_TRUE(tree.ok());
  return std::move(tree).value();
}

TEST(PrefixTree, FindsTheSameTokensAfterTheSameOnesOnly) {
  PrefixTree tree = MakeTree(8);
  const int32_t root = tree.Root("a");
  const std::vector<int32_t> first = Ids(kPageTokens, 0);
  const std::vector<int32_t> second = Ids(kPageTokens, 7);
  tree.Insert(3, root, {0, first, {}});
  tree.Insert(5, 3, {kPageTokens, second, {}});
  EXPECT_EQ(tree.Find(root, {0, first, {}}), 3);
  EXPECT_EQ(tree.Find(3, {kPageTokens, second, {}}), 5);
  EXPECT_EQ(tree.Find(root, {0, second, {}}), -1);
  EXPECT_EQ(tree.Find(5, {2 * kPageTokens, second, {}}), -1);
  EXPECT_EQ(tree.Find(root, {0, std::span(first).first(63), {}}), -1);
  EXPECT_EQ(tree.Find(tree.Root("b"), {0, first, {}}), -1);
  EXPECT_EQ(tree.Root("a"), root);
  EXPECT_EQ(tree.num_nodes(), 2);
}

// Every page has the same hash: only the tokens tell them apart.
TEST(PrefixTree, EqualHashesAreNoHit) {
  PrefixTree tree = MakeTree(16, [](int32_t, const PageTokens&) { return uint64_t{42}; });
  const int32_t root = tree.Root("a");
  for (int32_t page = 0; page < 10; ++page) {
    const std::vector<int32_t> ids = Ids(kPageTokens, page);
    EXPECT_EQ(tree.Find(root, {0, ids, {}}), -1);
    tree.Insert(page, root, {0, ids, {}});
  }
  std::vector<int32_t> changed = Ids(kPageTokens, 4);
  changed.back() ^= 1;
  EXPECT_EQ(tree.Find(root, {0, changed, {}}), -1);
  EXPECT_EQ(tree.Find(tree.Root("b"), {0, Ids(kPageTokens, 4), {}}), -1);
  const std::vector<TokenExtra> image = {{2, 5, {1, 2}}};
  EXPECT_EQ(tree.Find(root, {0, Ids(kPageTokens, 4), image}), -1);
  // The chain of the bucket survives a removal at its begin, middle and end.
  for (const int32_t page : {9, 5, 0}) tree.Remove(page);
  for (int32_t page = 0; page < 10; ++page) {
    const bool removed = page == 9 || page == 5 || page == 0;
    EXPECT_EQ(tree.Find(root, {0, Ids(kPageTokens, page), {}}), removed ? -1 : page);
  }
  EXPECT_EQ(tree.num_nodes(), 7);
}

TEST(PrefixTree, ExtrasArePartOfTheKey) {
  PrefixTree tree = MakeTree(4);
  const int32_t root = tree.Root("a");
  const std::vector<int32_t> ids = Ids(kPageTokens, 0);
  const std::vector<TokenExtra> image = {{110, 120, {1, 2}}, {125, 200, {3, 4}}};
  const int64_t begin = 100;
  tree.Insert(0, root, {begin, ids, image});
  EXPECT_EQ(tree.Find(root, {begin, ids, image}), 0);
  EXPECT_EQ(tree.CommonTokens(0, {begin, ids, image}), 25);  // never a part of the second
  for (int change = 0; change < 4; ++change) {
    std::vector<TokenExtra> other = image;
    if (change == 0) other[1].key[1] = 5;
    if (change == 1) other[1].begin = 126;
    if (change == 2) other[1].end = 201;
    if (change == 3) other.pop_back();
    EXPECT_EQ(tree.Find(root, {begin, ids, other}), -1) << change;
    EXPECT_EQ(tree.CommonTokens(0, {begin, ids, other}), 25) << change;
  }
  EXPECT_EQ(tree.CommonTokens(0, {begin, ids, {}}), 10);
  std::vector<TokenExtra> other = image;
  other[0].key = {};
  EXPECT_EQ(tree.CommonTokens(0, {begin, ids, other}), 10);
  // The same image at another place of the page.
  EXPECT_EQ(tree.Find(root, {begin - 1, ids, image}), -1);
}

TEST(PrefixTree, CommonTokensOfWholeAndPartPages) {
  PrefixTree tree = MakeTree(4);
  const int32_t root = tree.Root("a");
  const std::vector<int32_t> ids = Ids(kPageTokens, 0);
  tree.Insert(0, root, {0, ids, {}});
  tree.Insert(1, root, {0, std::span(ids).first(20), {}});
  EXPECT_EQ(tree.CommonTokens(0, {0, ids, {}}), 64);
  EXPECT_EQ(tree.CommonTokens(1, {0, ids, {}}), 20);
  EXPECT_EQ(tree.CommonTokens(0, {0, std::span(ids).first(9), {}}), 9);
  std::vector<int32_t> other = ids;
  other[30] = 99;
  EXPECT_EQ(tree.CommonTokens(0, {0, other, {}}), 30);
}

TEST(PrefixKey, PageOfTakesTheExtrasThatReachIn) {
  const std::vector<int32_t> ids = Ids(300, 0);
  const std::vector<TokenExtra> extras = {
      {10, 64, {1}}, {64, 70, {2}}, {70, 140, {3}}, {200, 210, {4}}};
  const PrefixTokens tokens{ids, extras};
  EXPECT_EQ(PageOf(tokens, 0, 64).extras.size(), 1u);
  EXPECT_EQ(PageOf(tokens, 64, 64).extras.size(), 2u);
  EXPECT_EQ(PageOf(tokens, 128, 64).extras.size(), 1u);
  EXPECT_EQ(PageOf(tokens, 192, 8).extras.size(), 0u);
  EXPECT_EQ(PageOf(tokens, 192, 9).extras.size(), 1u);
  for (const int64_t at : {10, 64, 70, 140, 141, 200, 250}) EXPECT_FALSE(CutsExtra(extras, at));
  for (const int64_t at : {11, 63, 65, 71, 139, 201}) EXPECT_TRUE(CutsExtra(extras, at));
}

}  // namespace
}  // namespace tq
