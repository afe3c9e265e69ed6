#include "server/pool_state.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/memory.h"

namespace tq::server {
namespace {

double SecondsSince(PoolClock::time_point start) {
  return std::chrono::duration<double>(PoolClock::now() - start).count();
}

}  // namespace

void PoolState::Touch(PoolEntry& entry) {
  entry.last_use = ++num_uses;
  entry.used = PoolClock::now();
}

ModelLease PoolState::Grant(size_t model) {
  PoolEntry& entry = entries[model];
  ++entry.stats.leases;
  Touch(entry);
  return {&entry.loaded->engine(),
          [self = shared_from_this(), model](Engine*) { self->Release(model); }};
}

void PoolState::Release(size_t model) {
  const std::lock_guard lock(mutex);
  PoolEntry& entry = entries[model];
  --entry.stats.leases;
  Touch(entry);
  if (entry.stats.leases == 0) changed.notify_one();
}

void PoolState::Leave(const std::shared_ptr<PoolWaiter>& waiter) {
  const std::lock_guard lock(mutex);
  if (queue.remove(waiter) == 0) return;
  --entries[waiter->model].stats.waiting;
  changed.notify_one();  // what it waited for may not be in the way of others any more
}

void PoolState::Settle(std::optional<size_t> model, const Status& status) {
  for (auto at = queue.begin(); at != queue.end();) {
    const auto here = at++;
    PoolWaiter& waiter = **here;
    if (model && waiter.model != *model) continue;
    --entries[waiter.model].stats.waiting;
    if (status.ok()) {
      waiter.result = Grant(waiter.model);
    } else {
      waiter.result = status;
    }
    settled.splice(settled.end(), queue, here);
  }
}

std::vector<size_t> PoolState::InTheWayOf(size_t model) const {
  int64_t bytes = entries[model].model.memory_bytes;
  int count = 1;
  std::vector<size_t> order;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].is(ModelState::kLoaded)) continue;
    bytes += entries[i].model.memory_bytes;
    ++count;
    order.push_back(i);
  }
  const auto key = [this](size_t i) {
    return std::tuple(!entries[i].idle(), !entries[i].draining, entries[i].last_use);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  const auto fits = [&] {
    return (options.memory_bytes == 0 || bytes <= options.memory_bytes) &&
           (options.max_loaded == 0 || count <= options.max_loaded);
  };
  size_t num = 0;
  for (; num < order.size() && !fits(); ++num) {
    bytes -= entries[order[num]].model.memory_bytes;
    --count;
  }
  order.resize(num);
  return order;
}

PoolStep PoolState::NextIdle() const {
  PoolStep step;
  if (options.idle_unload.count() == 0) return step;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].idle()) continue;
    const PoolClock::time_point due = entries[i].used + options.idle_unload;
    if (due <= PoolClock::now())
      return {.kind = PoolStep::Kind::kUnload, .model = i, .why = "idle"};
    step.until = step.until ? std::min(*step.until, due) : due;
  }
  return step;
}

PoolStep PoolState::Decide() {
  const auto first = std::find_if(queue.begin(), queue.end(), [this](const auto& waiter) {
    return !entries[waiter->model].is(ModelState::kLoaded);
  });
  std::vector<size_t> in_the_way;
  if (first != queue.end()) in_the_way = InTheWayOf((*first)->model);
  for (PoolEntry& entry : entries) entry.draining = false;
  for (const size_t i : in_the_way) entries[i].draining = true;
  // Loaded models: who came before the one that is waited for goes before it.
  bool is_before = true;
  for (auto at = queue.begin(); at != queue.end();) {
    const auto here = at++;
    if (here == first) is_before = false;
    PoolWaiter& waiter = **here;
    PoolEntry& entry = entries[waiter.model];
    if (!entry.is(ModelState::kLoaded) || (entry.draining && !is_before)) continue;
    --entry.stats.waiting;
    waiter.result = Grant(waiter.model);
    settled.splice(settled.end(), queue, here);
  }
  if (first == queue.end()) return NextIdle();
  for (const size_t i : in_the_way) {
    if (entries[i].idle()) return {.kind = PoolStep::Kind::kUnload, .model = i, .why = "room"};
  }
  if (in_the_way.empty()) return {.kind = PoolStep::Kind::kLoad, .model = (*first)->model};
  return NextIdle();
}

void PoolState::Run() {
  Lock lock(mutex);
  while (!stop) {
    const PoolStep step = Decide();
    if (!settled.empty()) {
      Tell(lock);
    } else if (step.kind == PoolStep::Kind::kLoad) {
      Load(lock, step.model);
    } else if (step.kind == PoolStep::Kind::kUnload) {
      Unload(lock, step.model, step.why);
    } else if (step.until) {
      changed.wait_until(lock, *step.until);
    } else {
      changed.wait(lock);
    }
  }
}

void PoolState::Tell(Lock& lock) {
  const PoolWaiters told = std::exchange(settled, {});
  lock.unlock();
  for (const auto& waiter : told) {
    if (waiter->ready) waiter->ready();
  }
  lock.lock();
}

void PoolState::Report(Lock& lock, const PoolEvent& event) {
  if (!options.on_event) return;
  lock.unlock();
  options.on_event(event);
  lock.lock();
}

void PoolState::Load(Lock& lock, size_t model) {
  PoolEntry& entry = entries[model];
  entry.stats.state = ModelState::kLoading;
  Report(lock, {.kind = PoolEvent::Kind::kLoad, .model = model});
  const PoolClock::time_point start = PoolClock::now();
  Result<std::unique_ptr<LoadedModel>> loaded = Busy("");
  while (true) {
    lock.unlock();
    loaded = entry.model.load();
    lock.lock();
    if (loaded.ok() || loaded.status().code() != StatusCode::kOutOfMemory) break;
    // The machine has less than the limit: what nobody uses makes room, and it is tried again.
    std::vector<size_t> idle;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].idle()) idle.push_back(i);
    }
    if (idle.empty()) break;
    Unload(lock,
           *std::min_element(
               idle.begin(), idle.end(),
               [this](size_t a, size_t b) { return entries[a].last_use < entries[b].last_use; }),
           "memory");
  }
  PoolEvent event{.kind = PoolEvent::Kind::kLoaded, .model = model};
  event.seconds = SecondsSince(start);
  if (loaded.ok()) {
    entry.loaded = std::move(loaded).value();
    entry.stats.state = ModelState::kLoaded;
    entry.stats.load_seconds += event.seconds;
    ++entry.stats.loads;
    Touch(entry);
  } else {
    entry.stats.state = ModelState::kUnloaded;
    ++entry.stats.failed_loads;
    event.kind = PoolEvent::Kind::kLoadFailed;
    event.status = loaded.status();
  }
  const Status status = event.status;
  Report(lock, event);
  // All that have come for it by now, so that a switch serves more than one.
  Settle(model, status);
}

void PoolState::Unload(Lock& lock, size_t model, std::string_view why) {
  PoolEntry& entry = entries[model];
  entry.stats.state = ModelState::kUnloading;
  std::unique_ptr<LoadedModel> loaded = std::move(entry.loaded);
  const PoolClock::time_point start = PoolClock::now();
  lock.unlock();
  const Status disk_error = loaded->engine().disk_error();
  loaded.reset();
  ReturnFreeMemory();
  lock.lock();
  if (!disk_error.ok()) entry.disk_error = disk_error;
  entry.stats.state = ModelState::kUnloaded;
  ++entry.stats.unloads;
  Report(lock, {.kind = PoolEvent::Kind::kUnloaded,
                .model = model,
                .seconds = SecondsSince(start),
                .why = why});
}

}  // namespace tq::server
