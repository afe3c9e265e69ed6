#include "cache/disk_store.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/file.h"

namespace tq {
namespace {

namespace fs = std::filesystem;
constexpr size_t kPayload = 5000;
constexpr int64_t kPlenty = int64_t{1} << 30;

class DiskStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "disk_store_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    for (int i = 0; i < 300; ++i) ids_.push_back(i * 7 % 101);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<DiskStore> Open(int64_t budget = kPlenty, const std::string& of = "model") {
    auto store = DiskStore::Open(folder_, of, budget);
    TQ_CHECK(store.ok());
    return std::move(*store);
  }
  static std::vector<std::byte> Payload(int64_t begin) {
    std::vector<std::byte> bytes(kPayload);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(begin));
    }
    return bytes;
  }
  PrefixTokens tokens() const { return {ids_, extras_}; }

  // The page of tokens [begin, begin + count) of ids_, and maybe its state.
  DiskKey Write(DiskStore& store, const DiskKey& parent, int64_t begin, int64_t count,
                bool with_state = false) {
    const PageTokens page = PageOf(tokens(), begin, count);
    DiskRecord record;
    record.parent = parent;
    record.ids.assign(page.ids.begin(), page.ids.end());
    for (TokenExtra extra : page.extras) {
      extra.begin -= begin;
      extra.end -= begin;
      record.extras.push_back(extra);
    }
    const DiskKey key = record.key();
    EXPECT_TRUE(store.Write(record, Payload(begin)).ok());
    if (with_state) {
      record.kind = DiskKind::kState;
      EXPECT_TRUE(store.Write(record, Payload(begin + 1)).ok());
    }
    return key;
  }
  void WriteChain(DiskStore& store, int64_t num_tokens) {
    DiskKey parent = store.root();
    for (int64_t begin = 0; begin < num_tokens; begin += kPageTokens) {
      parent = Write(store, parent, begin, std::min<int64_t>(kPageTokens, num_tokens - begin));
    }
  }
  // Tokens of the plan that could be read, with the right bytes.
  int64_t ReadBack(DiskStore& store, const DiskPlan& plan) {
    const std::atomic<bool> cancelled{false};
    int64_t begin = 0;
    for (const DiskName& name : plan.pages) {
      std::vector<std::byte> bytes(kPayload);
      const int64_t count = std::min<int64_t>(kPageTokens, plan.length - begin);
      const DiskStore::Parts parts = {std::span(bytes).first(1000), std::span(bytes).subspan(1000)};
      if (!store.Read(name, PageOf(tokens(), begin, count), parts, cancelled).ok()) return begin;
      EXPECT_EQ(bytes, Payload(begin));
      begin += count;
    }
    return begin;
  }
  int64_t FindAndRead(DiskStore& store) { return ReadBack(store, store.Find(tokens(), 0, false)); }
  std::vector<fs::path> Files(const DiskStore& store) const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(store.folder())) {
      if (entry.path().extension() == ".page" || entry.path().extension() == ".state") {
        out.push_back(entry.path());
      }
    }
    return out;
  }

  std::string folder_;
  std::vector<int32_t> ids_;
  std::vector<TokenExtra> extras_;
};

TEST_F(DiskStoreTest, AChainIsFoundAgainAlsoInPart) {
  {
    const auto store = Open();
    WriteChain(*store, 300);
    EXPECT_EQ(FindAndRead(*store), 299);  // one token is always computed
  }
  const auto store = Open();
  EXPECT_EQ(FindAndRead(*store), 299);
  ids_[270] = 1000;
  EXPECT_EQ(FindAndRead(*store), 270);
  ids_[258] = 1000;
  EXPECT_EQ(FindAndRead(*store), 256);  // two tokens are not worth a copy
  ids_[150] = 1000;
  EXPECT_EQ(FindAndRead(*store), 150);
  ids_[0] = 1000;
  EXPECT_EQ(FindAndRead(*store), 0);
}

TEST_F(DiskStoreTest, ASequenceThatHasItsFirstPagesGoesOn) {
  const auto store = Open();
  WriteChain(*store, 300);
  const DiskPlan plan = store->Find(tokens(), 2, false);
  EXPECT_EQ(plan.pages.size(), 3u);
  EXPECT_EQ(plan.length, 299);
}

TEST_F(DiskStoreTest, StatesDecideWithRecurrentLayers) {
  const auto store = Open();
  DiskKey parent = Write(*store, store->root(), 0, 64);
  parent = Write(*store, parent, 64, 64, true);
  parent = Write(*store, parent, 128, 64);
  DiskPlan plan = store->Find(tokens(), 0, true);
  EXPECT_EQ(plan.length, 128);
  EXPECT_EQ(plan.pages.size(), 2u);
  ASSERT_TRUE(plan.has_state);
  EXPECT_EQ(plan.state.key, plan.pages[1].key);
  Write(*store, parent, 192, 20, true);  // the end of a turn
  plan = store->Find(tokens(), 0, true);
  EXPECT_EQ(plan.length, 212);
  EXPECT_EQ(plan.pages.size(), 4u);
  ids_[211] = 1000;  // not a part of it
  EXPECT_EQ(store->Find(tokens(), 0, true).length, 128);
  ids_.resize(129);
  EXPECT_EQ(store->Find(tokens(), 0, true).length, 128);
  ids_.resize(128);
  EXPECT_FALSE(store->Find(tokens(), 0, true).has_state);
}

TEST_F(DiskStoreTest, ASpanIsReusedAsAWholeOrNotAtAll) {
  extras_ = {{100, 140, {1, 2}}};
  const auto store = Open();
  WriteChain(*store, 300);
  EXPECT_EQ(FindAndRead(*store), 299);
  extras_[0].key[1] = 3;
  EXPECT_EQ(FindAndRead(*store), 100);
  extras_.clear();
  EXPECT_EQ(FindAndRead(*store), 100);
  extras_ = {{100, 140, {1, 2}}};
  ids_[139] = 1000;
  EXPECT_EQ(FindAndRead(*store), 100);
}

// As after a kill or a loss of power at any byte, for each file of the chain.
TEST_F(DiskStoreTest, AFileCutAnywhereIsAShorterPrefixAndIsDropped) {
  const std::vector<size_t> sizes = {0, 1, 7, 8, 40, 79, 80, 300, 335, 336, 337, 1000, 5335};
  for (size_t file = 0; file < 5; ++file) {
    for (const size_t size : sizes) {
      fs::remove_all(folder_);
      std::vector<DiskName> names;
      {
        const auto store = Open();
        WriteChain(*store, 300);
        names = store->Find(tokens(), 0, false).pages;
      }
      const auto store = Open();
      const std::string path = store->folder() + "/" + names[file].FileName();
      const size_t whole = fs::file_size(path);
      if (size >= whole) continue;
      fs::resize_file(path, size);
      // Of the last page nothing can be known before its header is read.
      const int64_t length = FindAndRead(*store);
      EXPECT_EQ(length, static_cast<int64_t>(file) * kPageTokens) << size;
      EXPECT_EQ(FindAndRead(*store), length);
      WriteChain(*store, 300);  // it can be had again
      EXPECT_EQ(FindAndRead(*store), 299);
    }
  }
}

TEST_F(DiskStoreTest, AnyChangedByteOrOneMoreIsNoticed) {
  const auto store = Open();
  WriteChain(*store, 64);
  const DiskName name = {DiskPageKey(store->root(), PageOf(tokens(), 0, 64)), store->root(), 64,
                         DiskKind::kPage};
  const std::string path = store->folder() + "/" + name.FileName();
  const auto content = ReadTextFile(path);
  ASSERT_TRUE(content.ok());
  for (size_t at = 0; at <= content->size(); at += at < 336 ? 5 : 97) {
    std::string changed = *content;
    if (at < changed.size()) {
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
    } else {
      changed += '\0';
    }
    ASSERT_TRUE(WriteFile(path, changed).ok());
    EXPECT_EQ(FindAndRead(*Open()), 0) << at;
  }
  ASSERT_TRUE(WriteFile(path, *content).ok());
  EXPECT_EQ(FindAndRead(*Open()), 64);
}

TEST_F(DiskStoreTest, AnothersFilesAreLeftAlone) {
  std::vector<DiskName> names;
  const auto other = Open(kPlenty, "another model");
  WriteChain(*other, 128);
  names = other->Find(tokens(), 0, false).pages;
  // Its folder is its own; and a record of it in ours, under the name that ours would have.
  const auto store = Open();
  EXPECT_EQ(FindAndRead(*store), 0);
  DiskName ours = names[0];
  ours.parent = store->root();
  ours.key = DiskPageKey(store->root(), PageOf(tokens(), 0, 64));
  const std::string copy = store->folder() + "/" + ours.FileName();
  fs::copy_file(other->folder() + "/" + names[0].FileName(), copy);
  EXPECT_EQ(FindAndRead(*store), 0);
  EXPECT_TRUE(fs::exists(copy));
  EXPECT_EQ(Files(*other).size(), 2u);
}

// CA-03, CA-04: the bound is in bytes, room is made before, and what is larger is not begun.
TEST_F(DiskStoreTest, TheBudgetHoldsAndTheOldestGoes) {
  constexpr int64_t kFile = 8192;
  auto store = Open(3 * kFile);
  for (int turn = 0; turn < 20; ++turn) {
    ids_[0] = turn;
    Write(*store, store->root(), 0, 64);
    EXPECT_LE(store->total_bytes(), 3 * kFile);
    EXPECT_LE(Files(*store).size(), 3u);
    EXPECT_EQ(FindAndRead(*store), 64) << turn;
  }
  ids_[0] = 17;
  EXPECT_EQ(store->Find(tokens(), 0, false).pages.size(), 1u);
  store->Touch(store->Find(tokens(), 0, false).pages);
  ids_[0] = 100;
  Write(*store, store->root(), 0, 64);
  ids_[0] = 17;
  EXPECT_EQ(FindAndRead(*store), 64);
  ids_[0] = 18;
  EXPECT_EQ(FindAndRead(*store), 0);
  // A long chain keeps its beginning.
  fs::remove_all(folder_);
  store = Open(3 * kFile);
  WriteChain(*store, 300);
  EXPECT_EQ(FindAndRead(*store), 192);
  fs::remove_all(folder_);
  store = Open(kFile - 1);
  WriteChain(*store, 64);
  EXPECT_TRUE(Files(*store).empty());
}

// CA-10: a disk that takes no more.
TEST_F(DiskStoreTest, AFullDiskIsAnErrorThatLeavesNothingBehind) {
  const auto store = Open();
  WriteChain(*store, 64);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t limit : {0, 100, 4000}) {
    rlimit small = before;
    small.rlim_cur = limit;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    DiskRecord record;
    record.parent = DiskPageKey(store->root(), PageOf(tokens(), 0, 64));
    record.ids.assign(ids_.begin() + 64, ids_.begin() + 128);
    const auto written = store->Write(record, Payload(64));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(written.status().code(), StatusCode::kIo);
    EXPECT_EQ(Files(*store).size(), 1u);
  }
  std::signal(SIGXFSZ, old_handler);
  for (const auto& entry : fs::directory_iterator(store->folder())) {
    EXPECT_NE(entry.path().extension(), ".partial");
  }
  WriteChain(*store, 300);
  EXPECT_EQ(FindAndRead(*store), 299);
}

TEST_F(DiskStoreTest, TwoAtOnceSeeEachOther) {
  const auto a = Open();
  const auto b = Open();
  WriteChain(*a, 300);
  EXPECT_EQ(FindAndRead(*b), 299);
  WriteChain(*b, 300);
  EXPECT_EQ(Files(*a).size(), 5u);
  for (const fs::path& file : Files(*a)) fs::remove(file);
  EXPECT_EQ(FindAndRead(*b), 0);
}

TEST_F(DiskStoreTest, AFolderThatWentAwayIsMadeAgain) {
  const auto store = Open();
  fs::remove_all(folder_);
  WriteChain(*store, 300);
  EXPECT_EQ(FindAndRead(*store), 299);
}

TEST_F(DiskStoreTest, AFolderThatCannotBeIsOneLine) {
  ASSERT_TRUE(WriteFile(folder_, "a file").ok());
  const auto store = DiskStore::Open(folder_, "model", kPlenty);
  ASSERT_EQ(store.status().code(), StatusCode::kIo);
  EXPECT_NE(store.status().message().find(folder_), std::string::npos);
}

TEST_F(DiskStoreTest, UnfinishedFilesAreNotSeenAndOldOnesGo) {
  std::string old_file;
  std::string new_file;
  {
    const auto store = Open();
    old_file = store->folder() + "/.aa.partial";
    new_file = store->folder() + "/.bb.partial";
    ASSERT_TRUE(WriteFile(old_file, "x").ok());
    ASSERT_TRUE(WriteFile(new_file, "x").ok());
    fs::last_write_time(old_file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const auto store = Open();
  EXPECT_EQ(FindAndRead(*store), 0);
  EXPECT_FALSE(fs::exists(old_file));
  EXPECT_TRUE(fs::exists(new_file));
}

// Prompts that are nearly the same in every way: what is found holds what this one has written.
TEST_F(DiskStoreTest, NearlyEqualPromptsFindOnlyTheirOwn) {
  const auto store = Open(400 << 10);
  std::mt19937 random(5);
  // A page's bytes name all tokens up to its end, and what they stand for.
  const auto payload = [&](int64_t end) {
    std::vector<std::byte> bytes(600);
    for (int64_t i = 0; i < end; ++i)
      bytes[static_cast<size_t>(i)] = std::byte(ids_[static_cast<size_t>(i)]);
    for (const TokenExtra& extra : extras_) {
      for (int64_t i = extra.begin; i < std::min(extra.end, end); ++i) {
        bytes[static_cast<size_t>(i)] = std::byte(50 + 10 * extra.key[0] + (i - extra.begin) % 7);
      }
    }
    return bytes;
  };
  int64_t found = 0;
  for (int round = 0; round < 300; ++round) {
    ids_.assign(60 + random() % 200, 1);
    const auto length = static_cast<int64_t>(ids_.size());
    for (size_t n = random() % 3; n > 0; --n) ids_[random() % ids_.size()] = 2;
    extras_.clear();
    const int64_t begin = 20 + static_cast<int64_t>(random() % 3);
    const int64_t end = begin + 30 + static_cast<int64_t>(random() % 60);
    if (end <= length && random() % 3 > 0) extras_ = {{begin, end, {random() % 2, 5}}};

    const DiskPlan plan = store->Find(tokens(), 0, false);
    EXPECT_LT(plan.length, length);
    const std::atomic<bool> cancelled{false};
    int64_t at = 0;
    for (const DiskName& name : plan.pages) {
      std::vector<std::byte> bytes(600);
      const int64_t count = std::min<int64_t>(kPageTokens, plan.length - at);
      ASSERT_TRUE(
          store->Read(name, PageOf(tokens(), at, count), {std::span(bytes)}, cancelled).ok());
      at += count;
      const std::vector<std::byte> want = payload(at);
      ASSERT_TRUE(std::equal(want.begin(), want.begin() + at, bytes.begin())) << round;
    }
    EXPECT_EQ(at, plan.length);
    EXPECT_FALSE(CutsExtra(extras_, at)) << round;
    found += at;

    DiskKey parent = store->root();
    for (int64_t page_begin = 0; page_begin < length; page_begin += kPageTokens) {
      const int64_t page_end = std::min(page_begin + kPageTokens, length);
      const PageTokens page = PageOf(tokens(), page_begin, page_end - page_begin);
      DiskRecord record;
      record.parent = parent;
      record.ids.assign(page.ids.begin(), page.ids.end());
      for (TokenExtra extra : page.extras) {
        extra.begin -= page_begin;
        extra.end -= page_begin;
        record.extras.push_back(extra);
      }
      parent = record.key();
      EXPECT_TRUE(store->Write(record, payload(page_end)).ok());
    }
    EXPECT_LE(store->total_bytes(), 400 << 10);
  }
  EXPECT_GT(found, 300 * 10);
  EXPECT_EQ(store->dropped_files(), 0);
}

}  // namespace
}  // namespace tq
