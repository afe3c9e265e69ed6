// DiskCache: the disk prompt cache of one engine: a thread that writes copies of pages and states,
// and one that reads them back into pages that it is lent. The engine never waits for either but at
// its end (docs/engine.md, "Life of a disk record"). What is saved is disk_saver.h's to say.
// Thread: engine, but for the counters.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "cache/disk_store.h"
#include "cache/kv_cache.h"

namespace tq {

struct DiskCacheOptions {
  std::string folder = {};                   // "": no disk cache
  int64_t budget_bytes = int64_t{10} << 30;  // of records in the folder
  int64_t min_tokens = 512;                  // shorter conversations are not saved
  int64_t save_every = 1024;                 // tokens
  bool prefill_checkpoints = true;           // false: saved at the end of a turn only
  // Names what the weights and the settings of the checkpoint are, by their bytes.
  std::string content = {};
};

// Written by the cache's threads, read by any.
struct DiskCounters {
  std::atomic<int64_t> hits{0};
  std::atomic<int64_t> loaded_tokens{0};
  std::atomic<int64_t> written_files{0};
  std::atomic<int64_t> write_errors{0};
};

// A copy on its way to the disk. extras relative to the page.
struct DiskWrite {
  DiskRecord record;
  DiskKey key;
  Buffer payload;
  size_t size = 0;  // bytes of payload that count
};

// A sequence that waits for the disk. Its ids and extras, pages and slot are lent until done().
class DiskLoad {
 public:
  DiskLoad(const PrefixTokens& tokens, int64_t first_page, int64_t have,
           const std::vector<int32_t>& pages, int32_t slot)
      : tokens_(tokens), first_page_(first_page), have_(have), pages_(pages), slot_(slot) {}
  bool done() const { return done_.load(std::memory_order_acquire); }
  // The rest is valid when done(). Tokens that pages and slot cover now; 0: nothing was found, and
  // nothing changed.
  int64_t length() const { return length_; }
  // A record was not what it should be: pages and slot are undefined, that record is out of use.
  bool failed() const { return failed_; }

 private:
  friend class DiskCache;
  const PrefixTokens tokens_;
  const int64_t first_page_;  // those before are there
  const int64_t have_;        // tokens that the sequence has without it
  const std::vector<int32_t> pages_;
  const int32_t slot_;  // -1: no recurrent layers
  int64_t length_ = 0;
  bool failed_ = false;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> done_{false};
};

class DiskCache {
 public:
  // Tokens: for fewer nobody waits for the disk.
  static constexpr int64_t kLeastGain = kPageTokens;

  // kv must outlive it. notify: called by its threads when a load is done or a copy is written.
  // Errors: kInvalidArgument (no content), kIo (no folder), kOutOfMemory.
  static Result<std::unique_ptr<DiskCache>> Open(const DiskCacheOptions& options,
                                                 std::string_view fingerprint, const KvCache& kv,
                                                 std::function<void()> notify);
  // What is queued is written first.
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Memory of the copies that wait.
  static int64_t BufferBytes(int64_t page_bytes, int64_t slot_bytes);

  const DiskCacheOptions& options() const { return options_; }
  const DiskKey& root() const { return store_->root(); }
  // On the disk, or on its way.
  bool Has(const DiskKey& key, DiskKind kind) const;
  // False for a while after an error.
  bool writable() const;
  // A copy to fill and post; null: all are on their way.
  std::unique_ptr<DiskWrite> TakeWrite(DiskKind kind);
  void Post(std::unique_ptr<DiskWrite> write);
  // Until a copy was written.
  void WaitForWrite();

  std::shared_ptr<DiskLoad> Load(const PrefixTokens& tokens, int64_t first_page, int64_t have,
                                 const std::vector<int32_t>& pages, int32_t slot);
  // Returns when nobody touches what the load was lent: after one piece of 1 MiB at the latest.
  void Cancel(DiskLoad& load);

  const DiskCounters& counters() const { return counters_; }  // any thread; likewise below
  int64_t bytes_on_disk() const { return store_->total_bytes(); }
  int64_t dropped_files() const { return store_->dropped_files(); }
  Status last_error() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Writes = std::vector<std::unique_ptr<DiskWrite>>;

  DiskCache(const DiskCacheOptions& options, std::unique_ptr<DiskStore> store, const KvCache& kv,
            std::function<void()> notify);
  Writes& FreeOf(DiskKind kind) { return kind == DiskKind::kPage ? free_pages_ : free_states_; }
  void RunWriter();
  void RunReader();
  void WriteOne(DiskWrite& write);
  void ReadOne(DiskLoad& load);

  const DiskCacheOptions options_;
  const std::unique_ptr<DiskStore> store_;
  const KvCache& kv_;
  const std::function<void()> notify_;
  DiskCounters counters_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  Writes free_pages_;
  Writes free_states_;
  std::deque<std::unique_ptr<DiskWrite>> writes_;
  std::unordered_set<DiskKey, DiskKeyHash> pending_pages_;
  std::unordered_set<DiskKey, DiskKeyHash> pending_states_;
  std::deque<std::shared_ptr<DiskLoad>> loads_;
  int64_t num_written_ = 0;
  Clock::time_point paused_until_;  // after an error
  Status last_error_;
  bool stop_ = false;

  std::thread writer_;
  std::thread reader_;
};

}  // namespace tq
