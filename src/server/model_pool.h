// ModelPool: which of several models are in memory. One is loaded when a request asks for it, and
// models that nobody uses go first when there is no room for it. Requests hold leases; a model with
// a lease stays.
//
// Loads and unloads run on the pool's own thread, one at a time; requests for models that are
// loaded do not wait for them. When the room for a model is taken by models in use, those are
// drained: new requests for them wait behind it, so that it cannot starve. Thread: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace tq::server {

// A model in memory: weights, caches, and the engine on them. Its end gives all of it back.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;
  virtual Engine& engine() = 0;
};

struct PooledModel {
  std::string name;
  int64_t memory_bytes = 0;  // that it takes when it is loaded
  // Reads the weights; on the pool's thread.
  std::function<Result<std::unique_ptr<LoadedModel>>()> load;
};

enum class ModelState : uint8_t { kUnloaded, kLoading, kLoaded, kUnloading };
std::string_view ModelStateName(ModelState state);

struct PoolEvent {
  enum class Kind : uint8_t { kLoad, kLoaded, kLoadFailed, kUnloaded };
  Kind kind;
  size_t model;
  double seconds = 0;         // that it took
  Status status = {};         // of kLoadFailed
  std::string_view why = {};  // of kUnloaded: "room", "memory", "idle"
};

struct PoolOptions {
  int64_t memory_bytes = 0;                  // of all that are loaded; 0: no limit
  int max_loaded = 0;                        // 0: no limit
  std::chrono::milliseconds idle_unload{0};  // without a request; 0: never
  int max_waiting = 256;                     // requests that wait for a model; others are refused
  std::function<void(const PoolEvent&)> on_event = {};  // on the pool's thread
};

// What is known of one of the models.
struct PoolStats {
  ModelState state = ModelState::kUnloaded;
  int64_t leases = 0;
  int64_t waiting = 0;  // requests
  int64_t loads = 0;
  int64_t failed_loads = 0;
  int64_t unloads = 0;
  double load_seconds = 0;              // of all loads
  std::optional<EngineStats> engine{};  // of a loaded one
};

// The engine of a model that stays loaded as long as somebody has this.
using ModelLease = std::shared_ptr<Engine>;

// A request that may have to wait. Its end leaves the queue.
class LeaseRequest {
 public:
  virtual ~LeaseRequest() = default;
  // Nothing: not yet. At most one call returns the lease, or why there is none.
  virtual std::optional<Result<ModelLease>> Take() = 0;
};

struct PoolState;

class ModelPool {
 public:
  // Errors: kOutOfMemory: a model that needs more than the limit, with both numbers.
  static Result<std::unique_ptr<ModelPool>> Create(std::vector<PooledModel> models,
                                                   PoolOptions options);
  // Waits for a load that is on its way, then unloads all. Leases may outlive it, their engines do
  // not.
  ~ModelPool();
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;

  // ready: called once from another thread when Take() will say more; not when it does already.
  // Errors: kBusy: too many wait.
  Result<std::unique_ptr<LeaseRequest>> Ask(size_t model, std::function<void()> ready);
  // The same, waiting here. Errors: also those of the load.
  Result<ModelLease> Get(size_t model);

  std::vector<PoolStats> Stats() const;
  // The last errors of the disk caches of loaded models.
  std::vector<Status> DiskErrors() const;

 private:
  explicit ModelPool(std::shared_ptr<PoolState> state);
  const std::shared_ptr<PoolState> state_;
  std::thread thread_;
};

}  // namespace tq::server
