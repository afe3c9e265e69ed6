// DiskStore: the folder of the disk prompt cache of one fingerprint: records are written, found,
// read and removed here. A record appears complete or not at all; whatever is not exactly what was
// asked for counts as not there. Other processes may use the folder at the same time.
// Thread: any, Write one; all but Has and the counters may wait for the disk.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/disk_index.h"
#include "cache/disk_record.h"

namespace tq {

// A way on from the disk: whole pages from `first_page` on, the last one maybe in part.
struct DiskPlan {
  std::vector<DiskName> pages;
  bool has_state = false;
  DiskName state;      // after `length` tokens
  int64_t length = 0;  // tokens from the beginning that are there after the load
};

class DiskStore {
 public:
  // Records go to a folder of their own below `folder`. Errors: kIo when it cannot be made.
  static Result<std::unique_ptr<DiskStore>> Open(const std::string& folder,
                                                 std::string_view fingerprint,
                                                 int64_t budget_bytes);

  const DiskKey& root() const { return root_; }
  const std::string& folder() const { return folder_; }
  bool Has(const DiskKey& key, DiskKind kind) const;
  int64_t total_bytes() const;
  int64_t dropped_files() const { return dropped_files_.load(std::memory_order_relaxed); }

  enum class Written : uint8_t { kYes, kNo };
  // Makes room first, never at the cost of what the record follows. kNo: there is none, or the page
  // before it is not there, so that nobody would find it. Sets payload_hash. Errors: kIo.
  Result<Written> Write(DiskRecord& record, std::span<const std::byte> payload);

  // The longest way on for a sequence that has its first `first_page` pages, at least one token
  // shorter than the ids. With recurrent layers: to where a state was kept.
  DiskPlan Find(const PrefixTokens& tokens, int64_t first_page, bool has_state);

  using Parts = std::vector<std::span<std::byte>>;
  // Reads a record of the plan into `parts`, whose content is undefined after an error; the record
  // is not found again then. `wanted`: its first tokens, as many as are needed.
  // Errors: kNotFound, kCorrupt, kUnsupported (another's), kIo, kCancelled.
  Status Read(const DiskName& name, const PageTokens& wanted, const Parts& parts,
              const std::atomic<bool>& cancelled);
  // The records were of use.
  void Touch(const std::vector<DiskName>& names);

 private:
  DiskStore(std::string folder, const DiskKey& root, int64_t budget_bytes)
      : folder_(std::move(folder)), root_(root), budget_bytes_(budget_bytes) {}
  std::string PathOf(const DiskName& name) const { return folder_ + "/" + name.FileName(); }
  // Sees what other processes wrote and removed.
  void Refresh();
  Result<DiskHeader> PeekHeader(const DiskName& name) const;
  Result<DiskHeader> ReadHeader(int fd, const DiskName& name) const;
  Status ReadInto(const DiskName& name, const PageTokens& wanted, const Parts& parts,
                  const std::atomic<bool>& cancelled) const;
  // With its entry in the index. 0, or what errno said.
  int WriteFileOnce(const DiskName& name, std::span<const std::byte> header,
                    std::span<const std::byte> payload);
  // Removes old records until `bytes` more fit the budget, or are free. False: not possible.
  bool MakeRoom(int64_t bytes, std::span<const DiskKey> keep);
  int64_t RemoveOldest(std::span<const DiskKey> keep);
  // Takes the record out of use: that is what an error of reading it means.
  void Refuse(const DiskName& name, const Status& why);
  // The longest part of a page among the children of `parent`.
  void FindPart(const DiskKey& parent, const PageTokens& rest, DiskPlan& plan);

  const std::string folder_;
  const DiskKey root_;
  const int64_t budget_bytes_;
  std::atomic<int64_t> dropped_files_{0};
  mutable std::mutex mutex_;  // guards the next two; never held while the disk works
  DiskIndex index_;
  std::set<std::string> refused_;  // names not to be found again
  // Held while names in the folder and the index change together, or are compared; guards the next.
  // Before mutex_.
  std::mutex folder_mutex_;
  int64_t seen_ns_ = -1;  // change time of the folder at the last refresh
  // Of the one thread that writes.
  std::vector<std::byte> header_;
  std::chrono::steady_clock::time_point next_refresh_;
};

}  // namespace tq
