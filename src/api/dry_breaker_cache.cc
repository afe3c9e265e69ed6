#include "api/dry_breaker_cache.h"

#include <algorithm>
#include <utility>

#include "api/request_text.h"

namespace tq {

std::vector<std::vector<int32_t>> DryBreakerCache::Ids(const Tokenizer& tokenizer,
                                                       const std::vector<std::string>& texts) {
  // Under the lock: who asks for the same list waits for it instead of making it again.
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.texts == texts; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    entries_.push_front({texts, DryBreakerIds(tokenizer, texts)});
    if (entries_.size() > kMaxLists) entries_.pop_back();
  }
  return entries_.front().ids;
}

size_t DryBreakerCache::num_lists() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace tq
