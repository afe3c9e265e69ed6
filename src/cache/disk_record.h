// DiskRecord: one page of the disk prompt cache, or one state of recurrent layers, as a file: a
// header that says what the bytes are of, then the bytes. docs/formats/prompt-cache.md draws it.
// Knows no folder and no thread; no byte of a file can do more than be refused.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/prefix_key.h"

namespace tq {

// The name of a prefix: of its last page's tokens and of the name of what comes before them.
struct DiskKey {
  std::array<uint8_t, 16> bytes = {};
  friend auto operator<=>(const DiskKey&, const DiskKey&) = default;
};
struct DiskKeyHash {
  size_t operator()(const DiskKey& key) const;
};

// Before the first page. fingerprint: of everything but the tokens that the bytes depend on.
DiskKey DiskRootKey(std::string_view fingerprint);
// Positions of `page.extras` are absolute, as everywhere; the key has them relative to the page.
DiskKey DiskPageKey(const DiskKey& parent, const PageTokens& page);

std::string DiskKeyHex(const DiskKey& key);

enum class DiskKind : uint8_t { kPage = 1, kState = 2 };

// Of a page's tokens and the bytes kept for them. Extras are relative to the page.
struct DiskRecord {
  DiskKind kind = DiskKind::kPage;
  DiskKey root;
  DiskKey parent;
  std::vector<int32_t> ids;
  std::vector<TokenExtra> extras;
  uint64_t payload_bytes = 0;
  uint64_t payload_hash = 0;

  PageTokens tokens() const { return {0, ids, extras}; }
  DiskKey key() const { return DiskPageKey(parent, tokens()); }
};

// What a file begins with; as long as it needs to be.
inline constexpr size_t kDiskFixedBytes = 80;
inline constexpr size_t kMaxDiskExtras = 64;
inline constexpr size_t kMaxDiskHeaderBytes =
    kDiskFixedBytes + 4 * kPageTokens + 32 * kMaxDiskExtras;

// Replaces `out`. Requires: 1 to kPageTokens ids, at most kMaxDiskExtras extras.
void WriteDiskHeader(const DiskRecord& record, std::vector<std::byte>& out);

struct DiskHeader {
  DiskRecord record;
  size_t size = 0;  // the payload begins here
};
// bytes: the beginning of a file, kMaxDiskHeaderBytes of it if it has so many.
// Errors: kUnsupported (another version), kCorrupt.
Result<DiskHeader> ReadDiskHeader(std::span<const std::byte> bytes);

// XXH3 of a payload in pieces.
class DiskHash {
 public:
  DiskHash();
  ~DiskHash();
  DiskHash(const DiskHash&) = delete;
  DiskHash& operator=(const DiskHash&) = delete;
  void Add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tq
