#include "server/model_pool.h"

#include <utility>

#include <fmt/format.h>

#include "base/memory.h"
#include "server/pool_state.h"

namespace tq::server {
namespace {

class QueuedRequest final : public LeaseRequest {
 public:
  QueuedRequest(std::shared_ptr<PoolState> state, std::shared_ptr<PoolWaiter> waiter)
      : state_(std::move(state)), waiter_(std::move(waiter)) {}
  ~QueuedRequest() override { state_->Leave(waiter_); }
  std::optional<Result<ModelLease>> Take() override {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(waiter_->result, std::nullopt);
  }

 private:
  const std::shared_ptr<PoolState> state_;
  const std::shared_ptr<PoolWaiter> waiter_;
};

}  // namespace

std::string_view ModelStateName(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kLoaded:
      return "loaded";
    case ModelState::kUnloading:
      return "unloading";
  }
  return "";
}

Result<std::unique_ptr<ModelPool>> ModelPool::Create(std::vector<PooledModel> models,
                                                     PoolOptions options) {
  auto state = std::make_shared<PoolState>();
  for (PooledModel& model : models) {
    if (options.memory_bytes > 0 && model.memory_bytes > options.memory_bytes) {
      return OutOfMemory(
          fmt::format("{}: expected a model that fits into {:.3f} GB (the limit for all of them), "
                      "found one that takes {:.3f} GB: raise the limit or lower its context",
                      model.name, Gb(options.memory_bytes), Gb(model.memory_bytes)));
    }
    state->entries.push_back({.model = std::move(model)});
  }
  state->options = std::move(options);
  return std::unique_ptr<ModelPool>(new ModelPool(std::move(state)));
}

ModelPool::ModelPool(std::shared_ptr<PoolState> state)
    : state_(std::move(state)), thread_([running = state_.get()] { running->Run(); }) {}

ModelPool::~ModelPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_one();
  thread_.join();
  std::vector<std::unique_ptr<LoadedModel>> loaded;
  PoolState::Lock lock(state_->mutex);
  for (PoolEntry& entry : state_->entries) {
    if (entry.loaded != nullptr) loaded.push_back(std::move(entry.loaded));
    entry.stats.state = ModelState::kUnloaded;
  }
  state_->Settle(std::nullopt, Busy("the server is stopping"));
  state_->Tell(lock);
}

Result<std::unique_ptr<LeaseRequest>> ModelPool::Ask(size_t model, std::function<void()> ready) {
  const auto waiter = std::make_shared<PoolWaiter>(PoolWaiter{model, std::move(ready)});
  {
    const std::lock_guard lock(state_->mutex);
    PoolEntry& entry = state_->entries[model];
    if (state_->stop) return Busy("the server is stopping");
    if (entry.is(ModelState::kLoaded) && !entry.draining) {
      waiter->result = state_->Grant(model);
    } else if (entry.stats.waiting >= state_->options.max_waiting) {
      return Busy(
          fmt::format("queue: expected fewer than {} requests that wait for {}, found {}; try "
                      "again later",
                      state_->options.max_waiting, entry.model.name, entry.stats.waiting));
    } else {
      ++entry.stats.waiting;
      state_->queue.push_back(waiter);
    }
  }
  state_->changed.notify_one();
  return std::unique_ptr<LeaseRequest>(std::make_unique<QueuedRequest>(state_, waiter));
}

Result<ModelLease> ModelPool::Get(size_t model) {
  struct Wait {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const auto wait = std::make_shared<Wait>();
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<LeaseRequest> request, Ask(model, [wait] {
                        const std::lock_guard lock(wait->mutex);
                        wait->done = true;
                        wait->changed.notify_one();
                      }));
  if (auto at_once = request->Take()) return std::move(*at_once);
  std::unique_lock lock(wait->mutex);
  wait->changed.wait(lock, [&] { return wait->done; });
  return *request->Take();
}

std::vector<PoolStats> ModelPool::Stats() const {
  std::vector<PoolStats> all;
  const std::lock_guard lock(state_->mutex);
  for (const PoolEntry& entry : state_->entries) {
    all.push_back(entry.stats);
    if (entry.loaded != nullptr) all.back().engine = entry.loaded->engine().stats();
  }
  return all;
}

std::vector<Status> ModelPool::DiskErrors() const {
  std::vector<Status> errors;
  const std::lock_guard lock(state_->mutex);
  for (const PoolEntry& entry : state_->entries) {
    Status error = entry.disk_error;
    if (entry.loaded != nullptr && error.ok()) error = entry.loaded->engine().disk_error();
    if (!error.ok()) errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace tq::server
