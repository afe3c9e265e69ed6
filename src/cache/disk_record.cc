#include "cache/disk_record.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/sha256.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tq {
namespace {

constexpr std::string_view kMagic = "TQPROMPT";
// Of the layout of a record, and of what the engine's arithmetic makes of the same tokens: whatever
// changes a bit of a page needs a new number.
constexpr uint32_t kVersion = 1;
constexpr size_t kHashBytes = 8;
constexpr size_t kExtraBytes = 32;

DiskKey Shortened(Sha256& hash) {
  const Sha256Digest digest = hash.Finish();
  DiskKey key;
  std::copy_n(digest.begin(), key.bytes.size(), key.bytes.begin());
  return key;
}

// Little-endian, whatever the machine.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) { out_.clear(); }
  void Number(uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void Text(std::string_view text) {
    for (const char c : text) out_.push_back(static_cast<std::byte>(c));
  }
  void Key(const DiskKey& key) {
    for (const uint8_t byte : key.bytes) out_.push_back(static_cast<std::byte>(byte));
  }

 private:
  std::vector<std::byte>& out_;
};

// Requires: the caller has checked that the bytes are there.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t Number(size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value |= std::to_integer<uint64_t>(bytes_[at_ + i]) << (8 * i);
    }
    at_ += count;
    return value;
  }
  DiskKey Key() {
    DiskKey key;
    for (uint8_t& byte : key.bytes) byte = static_cast<uint8_t>(Number(1));
    return key;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

uint64_t HashOf(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Status CheckExtras(const std::vector<TokenExtra>& extras, int64_t num_ids) {
  int64_t end = -(int64_t{1} << 40);
  for (const TokenExtra& extra : extras) {
    const bool reaches_in = extra.begin < num_ids && extra.end > 0;
    if (!reaches_in || extra.begin < end || extra.begin >= extra.end ||
        extra.end > (int64_t{1} << 40)) {
      return Corrupt("prompt cache record: expected ascending spans that reach into the page");
    }
    end = extra.end;
  }
  return Status::Ok();
}

}  // namespace

size_t DiskKeyHash::operator()(const DiskKey& key) const {
  size_t hash = 0;
  std::memcpy(&hash, key.bytes.data(), sizeof(hash));
  return hash;
}

DiskKey DiskRootKey(std::string_view fingerprint) {
  Sha256 hash;
  hash.Add(fmt::format("turboquant prompt cache {}\n", kVersion));
  hash.Add(fingerprint);
  return Shortened(hash);
}

DiskKey DiskPageKey(const DiskKey& parent, const PageTokens& page) {
  Sha256 hash;
  hash.Add(std::as_bytes(std::span(parent.bytes)));
  hash.AddWord(page.ids.size());
  for (const int32_t id : page.ids) hash.AddWord(static_cast<uint32_t>(id));
  for (const TokenExtra& extra : page.extras) {
    hash.AddWord(static_cast<uint64_t>(extra.begin - page.begin));
    hash.AddWord(static_cast<uint64_t>(extra.end - page.begin));
    for (const uint64_t word : extra.key) hash.AddWord(word);
  }
  return Shortened(hash);
}

std::string DiskKeyHex(const DiskKey& key) {
  std::string out;
  for (const uint8_t byte : key.bytes) out += fmt::format("{:02x}", byte);
  return out;
}

void WriteDiskHeader(const DiskRecord& record, std::vector<std::byte>& out) {
  TQ_CHECK(!record.ids.empty() && record.ids.size() <= kPageTokens);
  TQ_CHECK(record.extras.size() <= kMaxDiskExtras);
  Writer writer(out);
  writer.Text(kMagic);
  writer.Number(kVersion, 4);
  writer.Number(static_cast<uint64_t>(record.kind), 4);
  writer.Number(record.ids.size(), 4);
  writer.Number(record.extras.size(), 4);
  writer.Number(record.payload_bytes, 8);
  writer.Number(record.payload_hash, 8);
  writer.Key(record.root);
  writer.Key(record.parent);
  for (const int32_t id : record.ids) writer.Number(static_cast<uint32_t>(id), 4);
  for (const TokenExtra& extra : record.extras) {
    writer.Number(static_cast<uint64_t>(extra.begin), 8);
    writer.Number(static_cast<uint64_t>(extra.end), 8);
    for (const uint64_t word : extra.key) writer.Number(word, 8);
  }
  writer.Number(HashOf(out), kHashBytes);
}

Result<DiskHeader> ReadDiskHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kDiskFixedBytes) {
    return Corrupt(fmt::format("prompt cache record: expected at least {} bytes, found {}",
                               kDiskFixedBytes, bytes.size()));
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return Corrupt("prompt cache record: expected TQPROMPT at its beginning, found something else");
  }
  Reader reader(bytes.subspan(kMagic.size()));
  const uint64_t version = reader.Number(4);
  if (version != kVersion) {
    return Unsupported(
        fmt::format("prompt cache record: expected version {}, found {}", kVersion, version));
  }
  DiskHeader out;
  DiskRecord& record = out.record;
  const uint64_t kind = reader.Number(4);
  const uint64_t num_ids = reader.Number(4);
  const uint64_t num_extras = reader.Number(4);
  if ((kind != 1 && kind != 2) || num_ids == 0 || num_ids > kPageTokens ||
      num_extras > kMaxDiskExtras) {
    return Corrupt(
        fmt::format("prompt cache record: expected kind 1 or 2, 1 to {} ids and at most {} spans, "
                    "found {}, {}, {}",
                    kPageTokens, kMaxDiskExtras, kind, num_ids, num_extras));
  }
  out.size = kDiskFixedBytes + 4 * num_ids + kExtraBytes * num_extras;
  if (bytes.size() < out.size) return Corrupt("prompt cache record: its header is cut short");
  const size_t hashed = out.size - kHashBytes;
  if (Reader(bytes.subspan(hashed)).Number(kHashBytes) != HashOf(bytes.first(hashed))) {
    return Corrupt("prompt cache record: its header's checksum is wrong");
  }
  record.kind = static_cast<DiskKind>(kind);
  record.payload_bytes = reader.Number(8);
  record.payload_hash = reader.Number(8);
  record.root = reader.Key();
  record.parent = reader.Key();
  for (uint64_t i = 0; i < num_ids; ++i) {
    record.ids.push_back(static_cast<int32_t>(reader.Number(4)));
  }
  for (uint64_t i = 0; i < num_extras; ++i) {
    TokenExtra extra;
    extra.begin = static_cast<int64_t>(reader.Number(8));
    extra.end = static_cast<int64_t>(reader.Number(8));
    for (uint64_t& word : extra.key) word = reader.Number(8);
    record.extras.push_back(extra);
  }
  TQ_RETURN_IF_ERROR(CheckExtras(record.extras, static_cast<int64_t>(num_ids)));
  return out;
}

struct DiskHash::State {
  XXH3_state_t xxh;
};

DiskHash::DiskHash() : state_(new State) { XXH3_64bits_reset(&state_->xxh); }
DiskHash::~DiskHash() = default;

void DiskHash::Add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

uint64_t DiskHash::value() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace tq
