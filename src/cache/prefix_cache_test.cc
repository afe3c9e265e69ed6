#include "cache/prefix_cache.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>

namespace tq {
namespace {

// What is kept of token i: its id, and of a span's its content and the place in it.
int32_t ValueOf(const PrefixTokens& tokens, int64_t i) {
  int32_t value = tokens.ids[static_cast<size_t>(i)];
  for (const TokenExtra& extra : tokens.extras) {
    if (extra.begin > i || extra.end <= i) continue;
    value +=
        static_cast<int32_t>(1000 * (extra.key[0] + 7 * extra.key[1]) + 100 * (i - extra.begin));
  }
  return value;
}

// Sequences without a model: the cache of a token is its value, the state the sum of all of them.
class Caches {
 public:
  explicit Caches(int64_t num_pages, int64_t checkpoints = -1, PageHash hash = HashPage,
                  const KvSettings& settings = KvFormat::kF32) {
    const KvLayout layout{settings, 1, 2, 2};
    const bool has_state = checkpoints >= 0;
    auto kv = KvCache::Create({{{layout}, has_state ? 1 : 0}}, num_pages,
                              kSequences + std::max<int64_t>(checkpoints, 0));
    EXPECT_TRUE(kv.ok());
    kv_ = std::make_unique<KvCache>(std::move(kv).value());
    auto prefix = PrefixCache::Create(
        *kv_, {.max_checkpoints = std::max<int64_t>(checkpoints, 0), .hash = hash});
    EXPECT_TRUE(prefix.ok());
    prefix_ = std::make_unique<PrefixCache>(std::move(prefix).value());
  }

  KvCache& kv() { return *kv_; }
  PrefixCache& prefix() { return *prefix_; }

  // A sequence that took up what the tree has, with pages for all ids.
  SequenceCache Start(const PrefixTokens& tokens, std::string_view fingerprint = "f") {
    SequenceCache out;
    out.state_slot = kv_->AllocateSlot();
    prefix_->Begin(out, fingerprint);
    prefix_->Adopt(out, prefix_->Match(out, tokens));
    const int64_t missing = KvCache::PagesFor(static_cast<int64_t>(tokens.ids.size())) -
                            static_cast<int64_t>(out.pages.size());
    EXPECT_TRUE(prefix_->Allocate(missing, out.pages));
    Check(out, tokens);
    return out;
  }
  // Computes up to `length` tokens.
  void Compute(SequenceCache& sequence, const PrefixTokens& tokens, int64_t length) {
    float& state = State(sequence.state_slot);
    if (sequence.length == 0) state = 0;
    for (; sequence.length < length; ++sequence.length) {
      const int32_t id = ValueOf(tokens, sequence.length);
      EXPECT_EQ(kv_->holders(sequence.pages[static_cast<size_t>(sequence.length / 64)]), 1);
      std::memcpy(Place(sequence, sequence.length), &id, 4);
      state += static_cast<float>(id);
    }
    prefix_->Publish(sequence, tokens);
    Check(sequence, tokens);
  }
  // Start, compute all, end.
  int64_t Run(const PrefixTokens& tokens) {
    SequenceCache sequence = Start(tokens);
    const int64_t reused = sequence.length;
    Compute(sequence, tokens, static_cast<int64_t>(tokens.ids.size()));
    prefix_->Release(sequence, tokens);
    return reused;
  }
  void Check(const SequenceCache& sequence, const PrefixTokens& tokens) {
    float sum = 0;
    for (int64_t i = 0; i < sequence.length; ++i) {
      int32_t id = 0;
      std::memcpy(&id, Place(sequence, i), 4);
      ASSERT_EQ(id, ValueOf(tokens, i)) << i;
      sum += static_cast<float>(id);
    }
    if (kv_->has_state() && sequence.length > 0) {
      ASSERT_EQ(State(sequence.state_slot), sum);
    }
  }
  void ExpectIdle() {
    EXPECT_EQ(prefix_->available(), kv_->num_pages());
    EXPECT_EQ(kv_->free_slots() + prefix_->num_checkpoints(), total_slots());
  }
  float& State(int32_t slot) {
    return kv_->has_state() ? kv_->layer(0).State(0).base[slot] : none_;
  }

 private:
  static constexpr int64_t kSequences = 4;
  int64_t total_slots() const {
    return kv_->has_state() ? static_cast<int64_t>(kv_->layer(0).states.size() / sizeof(float))
                            : kSequences;
  }
  std::byte* Place(const SequenceCache& sequence, int64_t position) {
    const int32_t page = sequence.pages[static_cast<size_t>(position / 64)];
    return kv_->layer(0).paged[0].Page(page).data() + position % 64 * 4;
  }
  std::unique_ptr<KvCache> kv_;
  std::unique_ptr<PrefixCache> prefix_;
  float none_ = 0;
};

std::vector<int32_t> Ids(int64_t count, int32_t salt = 0) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>((i * 31 + salt * 17 + i * i) % 97 + 1));
  }
  return ids;
}

// The first `common` ids of a, then other ones.
std::vector<int32_t> Branch(const std::vector<int32_t>& a, int64_t common, int64_t count) {
  std::vector<int32_t> ids = Ids(count, 5);
  std::copy(a.begin(), a.begin() + common, ids.begin());
  if (common < count) ids[static_cast<size_t>(common)] = 99;
  return ids;
}

PrefixTokens Plain(const std::vector<int32_t>& ids) { return {ids, {}}; }

TEST(PrefixCache, ReusesWholePagesAndCopiesTheTail) {
  Caches caches(16);
  const std::vector<int32_t> ids = Ids(210);
  EXPECT_EQ(caches.Run(Plain(ids)), 0);
  EXPECT_EQ(caches.prefix().num_pages(), 4);
  EXPECT_EQ(caches.Run(Plain(ids)), 209);  // one token is always computed
  EXPECT_EQ(caches.Run(Plain(Ids(192))), 191);
  EXPECT_EQ(caches.Run(Plain(Branch(ids, 150, 300))), 150);
  EXPECT_EQ(caches.Run(Plain(Branch(ids, 135, 140))), 128);  // seven tokens are no tail
  EXPECT_EQ(caches.Run(Plain(Ids(5))), 0);
  EXPECT_EQ(caches.Run(Plain(Ids(60, 1))), 0);
  caches.ExpectIdle();
}

TEST(PrefixCache, ALongerPageReplacesTheTailThatItBeginsWith) {
  Caches caches(16);
  const std::vector<int32_t> ids = Ids(200);
  for (const int64_t length : {75, 90, 120}) {
    caches.Run({std::span(ids).first(static_cast<size_t>(length)), {}});
    EXPECT_EQ(caches.prefix().num_pages(), 2) << length;
  }
  caches.Run({std::span(ids).first(80), {}});  // covered by what is there
  EXPECT_EQ(caches.prefix().num_pages(), 2);
  EXPECT_EQ(caches.Run(Plain(ids)), 120);
  EXPECT_EQ(caches.prefix().num_pages(), 4);
}

TEST(PrefixCache, RunningSequencesShareOnePage) {
  Caches caches(8);
  const std::vector<int32_t> a_ids = Ids(150);
  const std::vector<int32_t> b_ids = Branch(a_ids, 140, 180);
  SequenceCache a = caches.Start(Plain(a_ids));
  SequenceCache twin = caches.Start(Plain(a_ids));
  caches.Compute(a, Plain(a_ids), 130);
  SequenceCache b = caches.Start(Plain(b_ids));
  EXPECT_EQ(b.length, 128);
  EXPECT_EQ(b.pages[0], a.pages[0]);
  EXPECT_NE(b.pages[2], a.pages[2]);
  EXPECT_EQ(caches.prefix().available(), 1);
  // What was computed twice is kept once.
  caches.Compute(twin, Plain(a_ids), 150);
  EXPECT_EQ(twin.pages[1], a.pages[1]);
  EXPECT_EQ(caches.prefix().available(), 3);
  caches.prefix().Release(a, Plain(a_ids));
  caches.Check(b, Plain(b_ids));
  caches.prefix().Release(twin, Plain(a_ids));
  caches.Compute(b, Plain(b_ids), 180);
  caches.prefix().Release(b, Plain(b_ids));
  caches.ExpectIdle();
}

TEST(PrefixCache, EvictsTheLeastRecentlyUsedLeafThatNobodyUses) {
  Caches caches(6);
  const std::vector<int32_t> old = Ids(128, 1);
  const std::vector<int32_t> recent = Ids(128, 2);
  caches.Run(Plain(old));
  caches.Run(Plain(recent));
  EXPECT_EQ(caches.kv().free_pages(), 2);
  caches.Run(Plain(Ids(192, 3)));
  EXPECT_EQ(caches.prefix().evicted_pages(), 1);
  SequenceCache running = caches.Start(Plain(old));
  EXPECT_EQ(running.length, 64);  // its leaf went, its first page stayed
  std::vector<int32_t> pages;
  EXPECT_FALSE(caches.prefix().Allocate(6, pages));
  EXPECT_TRUE(caches.prefix().Allocate(caches.prefix().available(), pages));
  caches.Check(running, Plain(old));
  EXPECT_EQ(caches.prefix().num_pages(), running.num_shared);
  caches.kv().Free(pages);
  caches.prefix().Release(running, Plain(old));
  caches.ExpectIdle();
}

TEST(PrefixCache, FingerprintsDoNotMix) {
  Caches caches(8);
  const std::vector<int32_t> ids = Ids(100);
  caches.Run(Plain(ids));
  SequenceCache other = caches.Start(Plain(ids), "another");
  EXPECT_EQ(other.length, 0);
  caches.prefix().Release(other, Plain(ids));
}

TEST(PrefixCache, EqualHashesAreNoHit) {
  Caches caches(40, -1, [](int32_t, const PageTokens&) { return uint64_t{7}; });
  for (int32_t salt = 0; salt < 6; ++salt) EXPECT_EQ(caches.Run(Plain(Ids(210, salt))), 0);
  for (int32_t salt = 0; salt < 6; ++salt) EXPECT_EQ(caches.Run(Plain(Ids(210, salt))), 209);
}

TEST(PrefixCache, AnImageIsReusedAsAWholeOrNotAtAll) {
  Caches caches(16);
  const std::vector<int32_t> ids = Ids(300);
  const std::vector<TokenExtra> image = {{100, 170, {1, 2}}};
  const std::vector<TokenExtra> other = {{100, 170, {1, 3}}};
  EXPECT_EQ(caches.Run({ids, image}), 0);
  EXPECT_EQ(caches.Run({ids, image}), 299);
  EXPECT_EQ(caches.Run({ids, other}), 100);
  EXPECT_EQ(caches.Run({ids, {}}), 100);
  // The prompt ends inside: only what comes before it.
  Caches fresh(16);
  fresh.Run({ids, image});
  EXPECT_EQ(fresh.Run({std::span(ids).first(171), image}), 170);
  const std::vector<int32_t> branch = Branch(ids, 150, 300);
  EXPECT_EQ(fresh.Run({branch, image}), 100);
}

TEST(PrefixCache, RecurrentLayersNeedACheckpoint) {
  Caches caches(16, 4);
  const std::vector<int32_t> ids = Ids(300);
  SequenceCache a = caches.Start(Plain(ids));
  caches.Compute(a, Plain(ids), 64);
  caches.prefix().SaveCheckpoint(a);
  caches.Compute(a, Plain(ids), 192);
  caches.prefix().SaveCheckpoint(a);
  caches.Compute(a, Plain(ids), 300);
  caches.prefix().Release(a, Plain(ids));
  EXPECT_EQ(caches.prefix().num_checkpoints(), 3);  // the last one at the end
  std::vector<int32_t> longer = ids;
  longer.resize(310, 3);
  SequenceCache b = caches.Start(Plain(longer));
  EXPECT_EQ(b.length, 300);
  caches.prefix().Release(b, Plain(longer));
  SequenceCache c = caches.Start(Plain(Branch(ids, 299, 310)));
  EXPECT_EQ(c.length, 192);
  EXPECT_EQ(c.branch, 256);
  caches.prefix().Release(c, Plain(Branch(ids, 299, 310)));
  SequenceCache d = caches.Start(Plain(Branch(ids, 140, 310)));
  EXPECT_EQ(d.length, 64);
  EXPECT_EQ(d.branch, 128);
  caches.prefix().Release(d, Plain(Branch(ids, 140, 310)));
  caches.ExpectIdle();
}

TEST(PrefixCache, CheckpointsAreReplacedLeastRecentlyUsedFirst) {
  Caches caches(32, 2);
  for (int32_t salt = 0; salt < 3; ++salt) caches.Run(Plain(Ids(100, salt)));
  EXPECT_EQ(caches.prefix().num_checkpoints(), 2);
  for (const int32_t salt : {1, 0, 2}) {
    std::vector<int32_t> ids = Ids(100, salt);
    ids.push_back(7);
    SequenceCache sequence = caches.Start(Plain(ids));
    EXPECT_EQ(sequence.length, salt == 0 ? 0 : 100) << salt;
    caches.prefix().Release(sequence, Plain(ids));
  }
  caches.ExpectIdle();
}

TEST(PrefixCache, WithoutCheckpointsARecurrentCacheKeepsNothing) {
  Caches caches(8, 0);
  EXPECT_EQ(caches.Run(Plain(Ids(200))), 0);
  EXPECT_EQ(caches.Run(Plain(Ids(200))), 0);
  EXPECT_EQ(caches.prefix().num_pages(), 0);
  caches.ExpectIdle();
}

TEST(PrefixCache, TruncateGivesPagesBackAndCopiesASharedOne) {
  Caches caches(8);
  const std::vector<int32_t> ids = Ids(300);
  SequenceCache a = caches.Start(Plain(ids));
  caches.Compute(a, Plain(ids), 300);
  EXPECT_TRUE(caches.prefix().Truncate(a, 290, -1));
  EXPECT_EQ(a.pages.size(), 5u);
  EXPECT_EQ(a.num_shared, 4);
  const int32_t shared = a.pages[2];
  EXPECT_TRUE(caches.prefix().Truncate(a, 150, -1));
  EXPECT_EQ(a.length, 150);
  EXPECT_EQ(a.num_shared, 2);
  EXPECT_EQ(a.pages.size(), 3u);
  EXPECT_NE(a.pages[2], shared);  // the tree's page must not be written again
  EXPECT_EQ(caches.kv().holders(a.pages[2]), 1);
  const std::vector<int32_t> other = Branch(ids, 150, 200);
  EXPECT_TRUE(caches.prefix().Allocate(1, a.pages));
  caches.Compute(a, Plain(other), 200);
  EXPECT_EQ(caches.Run(Plain(ids)), 256);
  EXPECT_TRUE(caches.prefix().Truncate(a, 0, -1));
  EXPECT_TRUE(a.pages.empty());
  caches.prefix().Release(a, Plain(other));
  caches.ExpectIdle();
}

TEST(PrefixCache, TruncateOfAStateTakesItFromASlot) {
  Caches caches(8, 2);
  const std::vector<int32_t> ids = Ids(100);
  SequenceCache a = caches.Start(Plain(ids));
  caches.Compute(a, Plain(ids), 80);
  const int32_t slot = caches.kv().AllocateSlot();
  caches.kv().CopySlot(a.state_slot, slot);
  caches.Compute(a, Plain(ids), 100);
  EXPECT_TRUE(caches.prefix().Truncate(a, 80, slot));
  caches.Check(a, Plain(ids));
  caches.kv().FreeSlot(slot);
  caches.prefix().Release(a, Plain(ids));
  caches.ExpectIdle();
}

TEST(PrefixCache, TruncateNeedsAPageForASharedOne) {
  Caches caches(2);
  const std::vector<int32_t> ids = Ids(128);
  SequenceCache a = caches.Start(Plain(ids));
  caches.Compute(a, Plain(ids), 128);
  EXPECT_FALSE(caches.prefix().Truncate(a, 100, -1));
  caches.Check(a, Plain(ids));
  EXPECT_EQ(a.length, 128);
  EXPECT_TRUE(caches.prefix().Truncate(a, 64, -1));
  caches.prefix().Release(a, Plain(ids));
}

// Exact pages of a compressed cache: four sequences' slots serve any number of conversations, whole
// ones go when a slot is missing, and what is shared is what was computed.
TEST(PrefixCache, ExactPagesAreSharedAndEvicted) {
  KvSettings settings;
  settings.k = settings.v = KvFormat::kInt8;
  settings.exact = KvFormat::kF32;
  settings.min_tokens = 128;
  Caches caches(64, -1, HashPage, settings);
  for (int32_t salt = 0; salt < 10; ++salt) {
    EXPECT_EQ(caches.Run(Plain(Ids(300, salt))), 0);
    EXPECT_EQ(caches.Run(Plain(Ids(300, salt))), 299);
    EXPECT_EQ(caches.Run(Plain(Branch(Ids(300, salt), 90, 200))), 90);
  }
  EXPECT_GT(caches.prefix().evicted_pages(), 0);
  // Four at once, each with a first page of its own.
  std::vector<SequenceCache> running;
  std::vector<std::vector<int32_t>> ids;
  for (int32_t salt = 20; salt < 24; ++salt) ids.push_back(Ids(200, salt));
  for (const auto& own : ids) running.push_back(caches.Start(Plain(own)));
  for (size_t i = 0; i < 4; ++i) caches.Compute(running[i], Plain(ids[i]), 200);
  for (size_t i = 0; i < 4; ++i) {
    caches.Check(running[i], Plain(ids[i]));
    caches.prefix().Release(running[i], Plain(ids[i]));
  }
  caches.ExpectIdle();
}

// Prompts that are nearly the same in every way, under hashes that say nothing: what is taken up is
// what would have been computed, and never a part of a span.
TEST(PrefixCache, NearlyEqualPromptsNeverShareMoreThanTheyHave) {
  for (const int64_t checkpoints : {-1, 6}) {
    std::mt19937 random(11);
    const auto below = [&](size_t n) { return static_cast<int64_t>(random() % n); };
    Caches caches(24, checkpoints, [](int32_t parent, const PageTokens& page) {
      return HashPage(parent, page) % 3;
    });
    int64_t reused = 0;
    for (int round = 0; round < 1500; ++round) {
      // Few different ids, few changes; up to two spans, of few contents, borders and places.
      std::vector<int32_t> ids(static_cast<size_t>(60 + below(200)), 1);
      for (int64_t n = below(3); n > 0; --n) ids[random() % ids.size()] = 2;
      std::vector<TokenExtra> extras;
      const auto length = static_cast<int64_t>(ids.size());
      for (int64_t begin = 20 + below(3); extras.size() < 2 && below(3) > 0;) {
        const int64_t end = begin + 30 + below(60);
        if (end > length) break;
        extras.push_back({begin, end, {static_cast<uint64_t>(below(2)), 5}});
        begin = end + below(2);
      }
      const PrefixTokens tokens{ids, extras};
      SequenceCache sequence = caches.Start(tokens, below(8) == 0 ? "g" : "f");
      if (HasFatalFailure()) return;
      EXPECT_FALSE(CutsExtra(extras, sequence.length)) << sequence.length;
      EXPECT_LT(sequence.length, length);
      reused += sequence.length;
      // It may be cut off anywhere.
      const int64_t end = below(4) == 0 ? sequence.length + below(64) : length;
      for (int64_t at = sequence.length; at < std::min(end, length);) {
        at = std::min({(at / 64 + 1) * 64, end, length});
        caches.Compute(sequence, tokens, at);
        if (checkpoints > 0 && at % 64 == 0 && below(2) == 0)
          caches.prefix().SaveCheckpoint(sequence);
      }
      caches.prefix().Release(sequence, tokens);
      caches.ExpectIdle();
    }
    EXPECT_GT(reused, 1500);
    EXPECT_GT(caches.prefix().evicted_pages(), 100);
  }
}

}  // namespace
}  // namespace tq
