#include "server/rate_limiter.h"

#include <algorithm>
#include <cmath>

namespace tq::server {

RateLimiter::RateLimiter(int per_minute, size_t num_keys)
    : per_minute_(per_minute),
      buckets_(num_keys, Bucket{static_cast<double>(per_minute), Clock::time_point()}) {}

int RateLimiter::Take(size_t key, Clock::time_point now) {
  if (per_minute_ == 0) return 0;
  const std::lock_guard lock(mutex_);
  Bucket& bucket = buckets_[key];
  const double per_second = per_minute_ / 60.0;
  const std::chrono::duration<double> quiet = now - bucket.filled;
  if (bucket.filled != Clock::time_point()) {
    bucket.requests =
        std::min<double>(per_minute_, bucket.requests + std::max(0.0, quiet.count()) * per_second);
  }
  bucket.filled = now;
  if (bucket.requests < 1) {
    return std::max(1, static_cast<int>(std::ceil((1 - bucket.requests) / per_second)));
  }
  bucket.requests -= 1;
  return 0;
}

}  // namespace tq::server
