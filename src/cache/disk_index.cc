#include "cache/disk_index.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tq {
namespace {

constexpr size_t kHexDigits = 2 * sizeof(DiskKey);
constexpr int64_t kBlockBytes = 4096;

std::optional<DiskKey> ParseKey(std::string_view hex) {
  DiskKey key;
  for (size_t i = 0; i < key.bytes.size(); ++i) {
    const char* begin = hex.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, key.bytes[i], 16);
    if (error != std::errc() || end != begin + 2) return std::nullopt;
  }
  // One spelling only, so that a record has one name.
  if (DiskKeyHex(key) != hex) return std::nullopt;
  return key;
}

}  // namespace

std::string DiskName::FileName() const {
  return fmt::format("{}-{}-{:02}.{}", DiskKeyHex(key), DiskKeyHex(parent), num_tokens,
                     kind == DiskKind::kPage ? "page" : "state");
}

std::optional<DiskName> DiskName::Parse(std::string_view file_name) {
  DiskName name;
  constexpr size_t kStem = 2 * kHexDigits + 4;
  if (file_name.size() < kStem) return std::nullopt;
  const std::string_view suffix = file_name.substr(kStem);
  if (suffix != ".page" && suffix != ".state") return std::nullopt;
  name.kind = suffix == ".page" ? DiskKind::kPage : DiskKind::kState;
  const auto key = ParseKey(file_name.substr(0, kHexDigits));
  const auto parent = ParseKey(file_name.substr(kHexDigits + 1, kHexDigits));
  if (!key || !parent) return std::nullopt;
  name.key = *key;
  name.parent = *parent;
  const char* count = file_name.data() + 2 * kHexDigits + 2;
  std::from_chars(count, count + 2, name.num_tokens);
  if (name.num_tokens < 1 || name.num_tokens > kPageTokens || name.FileName() != file_name) {
    return std::nullopt;
  }
  return name;
}

void DiskIndex::Add(const DiskName& name, int64_t bytes, int64_t used_ns) {
  Remove(name);
  DiskEntry& entry = entries_[name.key];
  entry.parent = name.parent;
  entry.num_tokens = name.num_tokens;
  entry.file(name.kind) = {BytesOnDisk(std::max<int64_t>(bytes, 1)), used_ns};
  total_bytes_ += entry.file(name.kind).bytes;
  if (name.kind == DiskKind::kPage) children_[name.parent].push_back(name.key);
}

void DiskIndex::Remove(const DiskName& name) {
  const auto found = entries_.find(name.key);
  if (found == entries_.end()) return;
  DiskEntry::File& file = found->second.file(name.kind);
  if (file.bytes == 0) return;
  total_bytes_ -= file.bytes;
  file = {};
  if (name.kind == DiskKind::kPage) {
    const auto siblings = children_.find(found->second.parent);
    std::erase(siblings->second, name.key);
    if (siblings->second.empty()) children_.erase(siblings);
  }
  if (found->second.page.bytes == 0 && found->second.state.bytes == 0) entries_.erase(found);
}

void DiskIndex::Touch(const DiskName& name, int64_t used_ns) {
  const auto found = entries_.find(name.key);
  if (found != entries_.end()) found->second.file(name.kind).used_ns = used_ns;
}

const DiskEntry* DiskIndex::Find(const DiskKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

bool DiskIndex::Has(const DiskKey& key, DiskKind kind) const {
  const DiskEntry* entry = Find(key);
  return entry != nullptr && entry->file(kind).bytes > 0;
}

std::span<const DiskKey> DiskIndex::Children(const DiskKey& parent) const {
  const auto found = children_.find(parent);
  return found == children_.end() ? std::span<const DiskKey>() : found->second;
}

std::vector<DiskName> DiskIndex::All() const {
  std::vector<DiskName> names;
  for (const auto& [key, entry] : entries_) {
    for (const DiskKind kind : {DiskKind::kPage, DiskKind::kState}) {
      if (entry.file(kind).bytes > 0) names.push_back({key, entry.parent, entry.num_tokens, kind});
    }
  }
  return names;
}

int64_t DiskIndex::BytesOnDisk(int64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

std::vector<DiskName> DiskIndex::Oldest(std::span<const DiskKey> keep) const {
  const DiskKey* oldest = nullptr;
  const DiskEntry* its_entry = nullptr;
  bool whole = false;
  int64_t oldest_ns = 0;
  for (const auto& [key, entry] : entries_) {
    if (std::find(keep.begin(), keep.end(), key) != keep.end()) continue;
    const bool has_page = entry.page.bytes > 0;
    const bool is_leaf = has_page && Children(key).empty();
    if (!is_leaf && entry.state.bytes == 0) continue;
    const int64_t used = is_leaf ? std::max(entry.page.used_ns, entry.state.used_ns)  //
                                 : entry.state.used_ns;
    if (oldest != nullptr && used >= oldest_ns) continue;
    oldest = &key;
    its_entry = &entry;
    oldest_ns = used;
    whole = is_leaf;
  }
  std::vector<DiskName> names;
  if (oldest == nullptr) return names;
  const auto add = [&](DiskKind kind) {
    names.push_back({*oldest, its_entry->parent, its_entry->num_tokens, kind});
  };
  // The state first: without its page it could never be found again.
  if (its_entry->state.bytes > 0) add(DiskKind::kState);
  if (whole) add(DiskKind::kPage);
  return names;
}

}  // namespace tq
