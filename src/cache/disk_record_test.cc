#include "cache/disk_record.h"

#include <set>

#include <gtest/gtest.h>

namespace tq {
namespace {

DiskRecord Example(size_t num_ids) {
  DiskRecord record;
  record.kind = DiskKind::kState;
  record.root = DiskRootKey("a model");
  record.parent = DiskPageKey(record.root, {});
  for (size_t i = 0; i < num_ids; ++i) record.ids.push_back(static_cast<int32_t>(i * 77) - 5);
  record.extras = {{-70, 3, {1, 2}}, {5, 9, {~uint64_t{0}, 7}}};
  record.payload_bytes = 12345;
  record.payload_hash = 0x123456789abcdef0;
  return record;
}

TEST(DiskRecord, RoundTrip) {
  for (const size_t num_ids : {size_t{8}, size_t{kPageTokens}}) {
    const DiskRecord record = Example(num_ids);
    std::vector<std::byte> bytes;
    WriteDiskHeader(record, bytes);
    const size_t size = bytes.size();
    EXPECT_LE(size, kMaxDiskHeaderBytes);
    bytes.resize(size + 100);  // a payload follows
    const auto read = ReadDiskHeader(bytes);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->size, size);
    EXPECT_EQ(read->record.kind, record.kind);
    EXPECT_EQ(read->record.root, record.root);
    EXPECT_EQ(read->record.parent, record.parent);
    EXPECT_EQ(read->record.ids, record.ids);
    EXPECT_EQ(read->record.extras, record.extras);
    EXPECT_EQ(read->record.payload_bytes, record.payload_bytes);
    EXPECT_EQ(read->record.payload_hash, record.payload_hash);
    EXPECT_EQ(read->record.key(), record.key());
  }
}

TEST(DiskRecord, CutAnywhereOrAnyBitChangedIsRefused) {
  std::vector<std::byte> bytes;
  WriteDiskHeader(Example(20), bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadDiskHeader(std::span(bytes).first(size)).ok()) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] ^= std::byte{1} << bit;
      EXPECT_FALSE(ReadDiskHeader(bytes).ok()) << at << " bit " << bit;
      bytes[at] ^= std::byte{1} << bit;
    }
  }
  EXPECT_TRUE(ReadDiskHeader(bytes).ok());
}

TEST(DiskRecord, AnotherVersionIsNotCorrupt) {
  std::vector<std::byte> bytes;
  WriteDiskHeader(Example(20), bytes);
  bytes[8] = std::byte{99};
  EXPECT_EQ(ReadDiskHeader(bytes).status().code(), StatusCode::kUnsupported);
}

TEST(DiskRecord, KeysTellEverythingApart) {
  const DiskKey root = DiskRootKey("a");
  const std::vector<int32_t> ids = {1, 2, 3};
  const std::vector<int32_t> shorter = {1, 2};
  const std::vector<TokenExtra> extras = {{64, 66, {1, 2}}};
  const std::vector<TokenExtra> other_key = {{64, 66, {1, 3}}};
  const std::vector<TokenExtra> other_end = {{64, 65, {1, 2}}};
  const PageTokens page{64, ids, {}};
  const std::set<DiskKey> keys = {root,
                                  DiskRootKey("b"),
                                  DiskPageKey(root, page),
                                  DiskPageKey(DiskRootKey("b"), page),
                                  DiskPageKey(DiskPageKey(root, page), page),
                                  DiskPageKey(root, {64, shorter, {}}),
                                  DiskPageKey(root, {64, ids, extras}),
                                  DiskPageKey(root, {64, ids, other_key}),
                                  DiskPageKey(root, {64, ids, other_end})};
  EXPECT_EQ(keys.size(), 9u);
  // Where a page stands is in its parent, not in its positions.
  EXPECT_EQ(DiskPageKey(root, {64, ids, {}}), DiskPageKey(root, {0, ids, {}}));
}

}  // namespace
}  // namespace tq
