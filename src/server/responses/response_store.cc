#include "server/responses/response_store.h"

#include <iterator>
#include <utility>

namespace tq::server {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;

}  // namespace

ResponseStore::ResponseStore(size_t max_responses) : max_responses_(max_responses) {}

void ResponseStore::Put(const std::string& id, StoredResponse response) {
  if (max_responses_ == 0) return;
  const size_t bytes = response.response.size() + response.items.size() + response.input.size();
  const std::lock_guard lock(mutex_);
  entries_.push_back({id, std::make_shared<const StoredResponse>(std::move(response)), bytes});
  by_id_[id] = std::prev(entries_.end());
  bytes_ += bytes;
  while (entries_.size() > max_responses_ || (bytes_ > kMaxBytes && entries_.size() > 1)) {
    Erase(entries_.begin());
  }
}

void ResponseStore::Erase(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

std::shared_ptr<const StoredResponse> ResponseStore::Get(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  entries_.splice(entries_.end(), entries_, found->second);
  return found->second->response;
}

bool ResponseStore::Remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  Erase(found->second);
  return true;
}

void ResponseStore::Begin(const std::string& id, std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  running_[id] = std::move(cancel);
}

void ResponseStore::End(const std::string& id) {
  std::function<void()> gone;  // outside of the lock
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  gone = std::move(found->second);
  running_.erase(found);
}

bool ResponseStore::Cancel(const std::string& id) {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(id);
    if (found == running_.end()) return false;
    cancel = found->second;
  }
  cancel();
  return true;
}

}  // namespace tq::server
