// What a ModelPool is inside: the queue, the models, and the rules by which they come and go.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "server/model_pool.h"

namespace tq::server {

using PoolClock = std::chrono::steady_clock;

struct PoolWaiter {
  const size_t model;
  const std::function<void()> ready;
  std::optional<Result<ModelLease>> result = {};
};
using PoolWaiters = std::list<std::shared_ptr<PoolWaiter>>;

struct PoolEntry {
  PooledModel model;
  std::unique_ptr<LoadedModel> loaded = {};
  bool draining = false;         // it is in the way of a model that is waited for
  uint64_t last_use = 0;         // in the order of all uses
  PoolClock::time_point used{};  // when that was
  Status disk_error = {};        // of engines that are gone
  PoolStats stats = {};

  bool is(ModelState state) const { return stats.state == state; }
  bool idle() const { return is(ModelState::kLoaded) && stats.leases == 0; }
};

// What the pool's thread does next.
struct PoolStep {
  enum class Kind : uint8_t { kWait, kLoad, kUnload };
  Kind kind = Kind::kWait;
  size_t model = 0;
  std::string_view why = {};                        // of kUnload
  std::optional<PoolClock::time_point> until = {};  // of kWait
};

// Outlives the pool as long as there are leases and requests. A lease is never dropped under the
// lock, since that takes it.
struct PoolState : std::enable_shared_from_this<PoolState> {
  using Lock = std::unique_lock<std::mutex>;

  PoolOptions options;
  mutable std::mutex mutex;         // guards all below
  std::condition_variable changed;  // for the pool's thread
  std::vector<PoolEntry> entries;
  PoolWaiters queue;    // in the order of their coming
  PoolWaiters settled;  // have a result, and are to be told
  uint64_t num_uses = 0;
  bool stop = false;

  // The pool's thread, until stop.
  void Run();
  // These require the lock; those that are given it let go of it meanwhile.
  PoolStep Decide();
  void Load(Lock& lock, size_t model);
  void Unload(Lock& lock, size_t model, std::string_view why);
  void Tell(Lock& lock);
  void Report(Lock& lock, const PoolEvent& event);
  // Loaded models whose end makes room: idle ones first, then those that are drained already (who
  // is chosen stays chosen, though its last requests are uses too), each kind by its last use.
  std::vector<size_t> InTheWayOf(size_t model) const;
  // The next that was idle for too long, or when there will be one.
  PoolStep NextIdle() const;
  ModelLease Grant(size_t model);
  // Ends the wait of some: those of the model, or of all when there is none.
  void Settle(std::optional<size_t> model, const Status& status);
  void Touch(PoolEntry& entry);

  void Release(size_t model);
  void Leave(const std::shared_ptr<PoolWaiter>& waiter);
};

}  // namespace tq::server
