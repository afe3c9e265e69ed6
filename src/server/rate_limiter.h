// RateLimiter: how many requests each key may send a minute. Thread: any.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

namespace tq::server {

class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  // per_minute 0: no limit.
  RateLimiter(int per_minute, size_t num_keys);

  // Counts a request. 0: it may go on; else seconds until the next one may, and nothing is counted.
  // A key that was quiet may send a minute's worth at once.
  int Take(size_t key, Clock::time_point now);

 private:
  struct Bucket {
    double requests;  // that it has left
    Clock::time_point filled;
  };
  const int per_minute_;
  std::mutex mutex_;  // guards buckets_
  std::vector<Bucket> buckets_;
};

}  // namespace tq::server
