// DiskIndex: which records the folder of the disk prompt cache holds, told by file names and sizes
// alone: key, parent and length are in the name. Chooses what goes when the budget is reached. No
// file is touched here. Thread: guarded by its owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/disk_record.h"

namespace tq {

struct DiskName {
  DiskKey key;
  DiskKey parent;
  int32_t num_tokens = 0;
  DiskKind kind = DiskKind::kPage;

  // "<key>-<parent>-<tokens>.page" or ".state".
  std::string FileName() const;
  static std::optional<DiskName> Parse(std::string_view file_name);
};

struct DiskEntry {
  DiskKey parent;
  int32_t num_tokens = 0;
  // Bytes 0: no such file.
  struct File {
    int64_t bytes = 0;
    int64_t used_ns = 0;  // of the system clock
  };
  File page;
  File state;
  const File& file(DiskKind kind) const { return kind == DiskKind::kPage ? page : state; }
  File& file(DiskKind kind) { return kind == DiskKind::kPage ? page : state; }
};

class DiskIndex {
 public:
  // Replaces what is known of the file.
  void Add(const DiskName& name, int64_t bytes, int64_t used_ns);
  void Remove(const DiskName& name);
  void Touch(const DiskName& name, int64_t used_ns);

  const DiskEntry* Find(const DiskKey& key) const;
  bool Has(const DiskKey& key, DiskKind kind) const;
  // Those with a page.
  std::span<const DiskKey> Children(const DiskKey& parent) const;
  int64_t total_bytes() const { return total_bytes_; }
  std::vector<DiskName> All() const;

  // The files to remove next: a page that nothing follows, with its state; or the state of one that
  // is followed. Least recently used first; nothing of `keep`. Empty: nothing is left.
  std::vector<DiskName> Oldest(std::span<const DiskKey> keep) const;

  // A file takes whole blocks.
  static int64_t BytesOnDisk(int64_t bytes);

 private:
  std::unordered_map<DiskKey, DiskEntry, DiskKeyHash> entries_;
  std::unordered_map<DiskKey, std::vector<DiskKey>, DiskKeyHash> children_;
  int64_t total_bytes_ = 0;
};

}  // namespace tq
