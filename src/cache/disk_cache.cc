#include "cache/disk_cache.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <pthread.h>

#include "base/check.h"

namespace tq {
namespace {

constexpr int64_t kCopiesBytes = int64_t{128} << 20;
constexpr int64_t kStateCopies = 2;
constexpr std::chrono::seconds kPause(60);

int64_t PageCopies(int64_t page_bytes) {
  return std::clamp<int64_t>(kCopiesBytes / std::max<int64_t>(page_bytes, 1), 4, 32);
}

// Signals are for the program's threads; a file size limit is then an error like any other.
void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

int64_t DiskCache::BufferBytes(int64_t page_bytes, int64_t slot_bytes) {
  return PageCopies(page_bytes) * page_bytes + kStateCopies * slot_bytes;
}

Result<std::unique_ptr<DiskCache>> DiskCache::Open(const DiskCacheOptions& options,
                                                   std::string_view fingerprint, const KvCache& kv,
                                                   std::function<void()> notify) {
  if (options.content.empty()) {
    return InvalidArgument(
        "disk_cache.content: expected the name of the checkpoint's bytes, found none");
  }
  const std::string of = std::string(fingerprint) + " content=" + options.content;
  TQ_ASSIGN_OR_RETURN(auto store, DiskStore::Open(options.folder, of, options.budget_bytes));
  std::unique_ptr<DiskCache> cache(new DiskCache(options, std::move(store), kv, std::move(notify)));
  const auto add_copies = [&](DiskKind kind, int64_t count, int64_t bytes) {
    for (int64_t i = 0; i < count; ++i) {
      auto write = std::make_unique<DiskWrite>();
      TQ_ASSIGN_OR_RETURN(write->payload, Buffer::Allocate(static_cast<size_t>(bytes)));
      write->record.ids.reserve(kPageTokens);
      cache->FreeOf(kind).push_back(std::move(write));
    }
    return Status::Ok();
  };
  TQ_RETURN_IF_ERROR(
      add_copies(DiskKind::kPage, PageCopies(kv.largest_page_bytes()), kv.largest_page_bytes()));
  if (kv.has_state()) {
    TQ_RETURN_IF_ERROR(add_copies(DiskKind::kState, kStateCopies, kv.bytes_per_slot()));
  }
  cache->writer_ = std::thread([self = cache.get()] { self->RunWriter(); });
  cache->reader_ = std::thread([self = cache.get()] { self->RunReader(); });
  return cache;
}

DiskCache::DiskCache(const DiskCacheOptions& options, std::unique_ptr<DiskStore> store,
                     const KvCache& kv, std::function<void()> notify)
    : options_(options), store_(std::move(store)), kv_(kv), notify_(std::move(notify)) {}

DiskCache::~DiskCache() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
  if (reader_.joinable()) reader_.join();
}

bool DiskCache::Has(const DiskKey& key, DiskKind kind) const {
  {
    const std::lock_guard lock(mutex_);
    if ((kind == DiskKind::kPage ? pending_pages_ : pending_states_).contains(key)) return true;
  }
  return store_->Has(key, kind);
}

bool DiskCache::writable() const {
  const std::lock_guard lock(mutex_);
  return paused_until_ == Clock::time_point() || Clock::now() >= paused_until_;
}

std::unique_ptr<DiskWrite> DiskCache::TakeWrite(DiskKind kind) {
  const std::lock_guard lock(mutex_);
  Writes& free = FreeOf(kind);
  if (free.empty()) return nullptr;
  std::unique_ptr<DiskWrite> write = std::move(free.back());
  free.pop_back();
  write->record.kind = kind;
  return write;
}

void DiskCache::Post(std::unique_ptr<DiskWrite> write) {
  {
    const std::lock_guard lock(mutex_);
    (write->record.kind == DiskKind::kPage ? pending_pages_ : pending_states_).insert(write->key);
    writes_.push_back(std::move(write));
  }
  changed_.notify_all();
}

void DiskCache::WaitForWrite() {
  std::unique_lock lock(mutex_);
  const int64_t before = num_written_;
  if (writes_.empty() && pending_pages_.empty() && pending_states_.empty()) return;
  changed_.wait(lock, [&] { return num_written_ != before; });
}

void DiskCache::RunWriter() {
  BlockSignals();
  while (true) {
    std::unique_ptr<DiskWrite> write;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !writes_.empty(); });
      if (writes_.empty()) return;
      write = std::move(writes_.front());
      writes_.pop_front();
    }
    if (writable()) WriteOne(*write);
    {
      const std::lock_guard lock(mutex_);
      const DiskKind kind = write->record.kind;
      (kind == DiskKind::kPage ? pending_pages_ : pending_states_).erase(write->key);
      FreeOf(kind).push_back(std::move(write));
      ++num_written_;
    }
    changed_.notify_all();
    notify_();
  }
}

void DiskCache::WriteOne(DiskWrite& write) {
  const auto bytes = std::span(write.payload.data(), write.size);
  const auto written = store_->Write(write.record, bytes);
  if (written.ok()) {
    if (*written == DiskStore::Written::kYes) {
      counters_.written_files.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  counters_.write_errors.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  last_error_ = written.status().WithContext("disk cache");
  paused_until_ = Clock::now() + kPause;
}

std::shared_ptr<DiskLoad> DiskCache::Load(const PrefixTokens& tokens, int64_t first_page,
                                          int64_t have, const std::vector<int32_t>& pages,
                                          int32_t slot) {
  auto load = std::make_shared<DiskLoad>(tokens, first_page, have, pages, slot);
  {
    const std::lock_guard lock(mutex_);
    loads_.push_back(load);
  }
  changed_.notify_all();
  return load;
}

void DiskCache::Cancel(DiskLoad& load) {
  load.cancelled_.store(true, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  const auto queued = std::find_if(loads_.begin(), loads_.end(),
                                   [&](const auto& other) { return other.get() == &load; });
  if (queued != loads_.end()) {
    loads_.erase(queued);
    return;
  }
  changed_.wait(lock, [&] { return load.done(); });
}

void DiskCache::RunReader() {
  BlockSignals();
  while (true) {
    std::shared_ptr<DiskLoad> load;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !loads_.empty(); });
      if (loads_.empty()) return;
      load = std::move(loads_.front());
      loads_.pop_front();
    }
    ReadOne(*load);
    {
      const std::lock_guard lock(mutex_);
      load->done_.store(true, std::memory_order_release);
    }
    changed_.notify_all();
    notify_();
  }
}

void DiskCache::ReadOne(DiskLoad& load) {
  const bool has_state = load.slot_ >= 0;
  DiskPlan plan = store_->Find(load.tokens_, load.first_page_, has_state);
  if (plan.pages.empty() || plan.length < load.have_ + kLeastGain) return;
  const auto read = [&](const DiskName& name, int64_t page, const DiskStore::Parts& parts) {
    const int64_t begin = page * kPageTokens;
    const int64_t count = std::min<int64_t>(plan.length - begin, kPageTokens);
    return store_->Read(name, PageOf(load.tokens_, begin, count), parts, load.cancelled_).ok();
  };
  const auto num_pages = static_cast<int64_t>(plan.pages.size());
  load.failed_ =
      has_state && !read(plan.state, load.first_page_ + num_pages - 1, kv_.SlotParts(load.slot_));
  for (int64_t i = 0; i < num_pages && !load.failed_; ++i) {
    const int64_t page = load.first_page_ + i;
    const int32_t to = load.pages_[static_cast<size_t>(page)];
    load.failed_ = !read(plan.pages[static_cast<size_t>(i)], page, kv_.PageParts(to));
  }
  if (load.failed_) return;
  load.length_ = plan.length;
  counters_.hits.fetch_add(1, std::memory_order_relaxed);
  counters_.loaded_tokens.fetch_add(plan.length - load.have_, std::memory_order_relaxed);
  if (has_state) plan.pages.push_back(plan.state);
  store_->Touch(plan.pages);
}

Status DiskCache::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

}  // namespace tq
