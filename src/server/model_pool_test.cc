// The pool alone, with models whose loads are counted, held and made to fail.
#include "server/model_pool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "engine/fake_model.h"
#include "support/model_entry.h"

namespace tq::server {
namespace {

using std::chrono::milliseconds;
using Kind = PoolEvent::Kind;

// A pool of models 'a', 'b', ... and what happens in it: "+a" loaded, "-a" unloaded, "!a" failed.
class Fixture {
 public:
  Fixture(std::vector<int64_t> bytes, PoolOptions options) {
    std::vector<PooledModel> models;
    for (const int64_t one : bytes) {
      const std::string name(1, static_cast<char>('a' + models.size()));
      models.push_back({name, one, [this, name] { return Load(name); }});
    }
    options.on_event = [this](const PoolEvent& event) { Note(event); };
    auto pool = ModelPool::Create(std::move(models), std::move(options));
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    pool_ = std::move(pool).value();
  }

  ModelPool& pool() { return *pool_; }
  void End() { pool_.reset(); }
  std::string events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  // The next loads end with this.
  void FailWith(Status status, int times) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(status);
    failures_ = times;
  }
  // Loads wait until Open.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }
  void WaitLoading() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return loading_ > 0; });
  }
  ModelLease Get(size_t model) {
    auto lease = pool_->Get(model);
    EXPECT_TRUE(lease.ok()) << lease.status().message();
    return lease.ok() ? std::move(lease).value() : nullptr;
  }

 private:
  Result<std::unique_ptr<LoadedModel>> Load(const std::string&) {
    {
      std::unique_lock lock(mutex_);
      ++loading_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !closed_; });
      --loading_;
      if (failures_ > 0) {
        --failures_;
        return failure_;
      }
    }
    return tq::test::EngineModel::Load(std::make_unique<FakeModel>(), {});
  }
  void Note(const PoolEvent& event) {
    const std::lock_guard lock(mutex_);
    const char name = static_cast<char>('a' + event.model);
    if (event.kind == Kind::kLoaded) events_ += std::string("+") + name;
    if (event.kind == Kind::kUnloaded) events_ += std::string("-") + name;
    if (event.kind == Kind::kLoadFailed) events_ += std::string("!") + name;
  }

  std::mutex mutex_;  // guards the next six
  std::condition_variable changed_;
  std::string events_;
  Status failure_;
  int failures_ = 0;
  int loading_ = 0;
  bool closed_ = false;
  std::unique_ptr<ModelPool> pool_;  // last: its thread uses the rest
};

// A request that waits, and when it was told.
class Waiting {
 public:
  Waiting(Fixture& fixture, size_t model) {
    auto request = fixture.pool().Ask(model, [told = told_] { *told = true; });
    EXPECT_TRUE(request.ok()) << request.status().message();
    request_ = std::move(request).value();
  }
  // Nothing yet?
  bool waits() {
    if (!result_) result_ = request_->Take();
    return !result_;
  }
  Result<ModelLease>& Wait() {
    for (int i = 0; i < 5000 && waits(); ++i) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(result_);
    if (!result_) result_ = Internal("it waits for ever");
    return *result_;
  }
  void Release() { result_ = Busy("released"); }
  void Leave() { request_.reset(); }

 private:
  const std::shared_ptr<std::atomic<bool>> told_ = std::make_shared<std::atomic<bool>>(false);
  std::unique_ptr<LeaseRequest> request_;
  std::optional<Result<ModelLease>> result_;
};

void Settle() { std::this_thread::sleep_for(milliseconds(30)); }

TEST(ModelPool, LoadsOnDemandAndKeepsWhatFits) {
  Fixture fixture({4, 4}, {.memory_bytes = 8});
  EXPECT_EQ(fixture.pool().Stats()[0].state, ModelState::kUnloaded);
  const ModelLease a = fixture.Get(0);
  const ModelLease b = fixture.Get(1);
  EXPECT_EQ(fixture.Get(0), a) << "the same engine";
  EXPECT_EQ(fixture.events(), "+a+b");
  const std::vector<PoolStats> stats = fixture.pool().Stats();
  EXPECT_EQ(stats[0].leases, 1);
  EXPECT_EQ(stats[1].loads, 1);
  ASSERT_TRUE(stats[1].engine);
  EXPECT_EQ(stats[1].engine->total_pages, 64);
}

TEST(ModelPool, TheLeastRecentlyUsedGoesFirst) {
  Fixture fixture({4, 4, 4}, {.memory_bytes = 8});
  fixture.Get(0);
  fixture.Get(1);
  fixture.Get(0);
  fixture.Get(2);
  EXPECT_EQ(fixture.events(), "+a+b-b+c");
  fixture.Get(1);
  EXPECT_EQ(fixture.events(), "+a+b-b+c-a+b");
  EXPECT_EQ(fixture.pool().Stats()[1].unloads, 1);
}

TEST(ModelPool, AsManyGoAsThereHasToBeRoom) {
  Fixture fixture({2, 3, 3, 6}, {.memory_bytes = 10});
  for (const size_t model : {1, 0, 2, 3}) fixture.Get(model);
  EXPECT_EQ(fixture.events(), "+b+a+c-b-a+d");
}

TEST(ModelPool, ALimitOfTheirNumber) {
  Fixture fixture({1, 1}, {.max_loaded = 1});
  fixture.Get(0);
  fixture.Get(1);
  fixture.Get(0);
  EXPECT_EQ(fixture.events(), "+a-a+b-b+a");
}

TEST(ModelPool, AModelThatCanNeverFitIsRefusedAtOnce) {
  std::vector<PooledModel> models(1);
  models[0] = {"big", 9'000'000'000, {}};
  const auto pool = ModelPool::Create(std::move(models), {.memory_bytes = 8'000'000'000});
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), StatusCode::kOutOfMemory);
  for (const char* part : {"big", "8.000 GB", "9.000 GB"}) {
    EXPECT_NE(pool.status().message().find(part), std::string::npos) << pool.status().message();
  }
}

TEST(ModelPool, AModelInUseStaysUntilItIsIdle) {
  Fixture fixture({4, 4}, {.memory_bytes = 4});
  ModelLease a = fixture.Get(0);
  Waiting b(fixture, 1);
  Settle();
  EXPECT_TRUE(b.waits());
  EXPECT_EQ(fixture.events(), "+a");
  EXPECT_EQ(fixture.pool().Stats()[1].waiting, 1);
  a.reset();
  EXPECT_TRUE(b.Wait().ok());
  EXPECT_EQ(fixture.events(), "+a-a+b");
}

// Without it a model that is always asked for would never make room.
TEST(ModelPool, NewRequestsForAModelInTheWayQueueBehind) {
  Fixture fixture({4, 4}, {.memory_bytes = 4});
  ModelLease running = fixture.Get(0);
  Waiting b(fixture, 1);
  Settle();
  Waiting late(fixture, 0);
  Settle();
  EXPECT_TRUE(late.waits());
  running.reset();
  EXPECT_TRUE(b.Wait().ok());
  EXPECT_TRUE(late.waits());
  b.Release();
  EXPECT_TRUE(late.Wait().ok());
  EXPECT_EQ(fixture.events(), "+a-a+b-b+a");
}

// Else two models in use would be drained by turns, and neither become idle.
TEST(ModelPool, WhoIsInTheWayStaysSo) {
  Fixture fixture({4, 4, 4}, {.memory_bytes = 8});
  ModelLease a1 = fixture.Get(0);
  ModelLease a2 = fixture.Get(0);
  const ModelLease b1 = fixture.Get(1);
  Waiting c(fixture, 2);
  Settle();
  a1.reset();  // now b is the one that was used before
  Settle();
  Waiting late(fixture, 0);
  Settle();
  EXPECT_TRUE(late.waits());
  EXPECT_FALSE(Waiting(fixture, 1).waits()) << "not in the way";
  a2.reset();
  EXPECT_TRUE(c.Wait().ok());
  EXPECT_EQ(fixture.events(), "+a+b-a+c");
}

TEST(ModelPool, ASwitchServesAllThatHaveCome) {
  Fixture fixture({4, 4}, {.memory_bytes = 4});
  ModelLease running = fixture.Get(0);
  Waiting b1(fixture, 1);
  Settle();
  Waiting a1(fixture, 0);
  Waiting b2(fixture, 1);
  running.reset();
  EXPECT_TRUE(b1.Wait().ok());
  EXPECT_TRUE(b2.Wait().ok());
  Settle();
  EXPECT_TRUE(a1.waits());
  Waiting b3(fixture, 1);  // behind a1
  Settle();
  EXPECT_TRUE(b3.waits());
  b1.Release();
  b2.Release();
  EXPECT_TRUE(a1.Wait().ok());
  EXPECT_TRUE(b3.waits());
}

TEST(ModelPool, WhoLeavesGivesTheWayFree) {
  Fixture fixture({4, 4}, {.memory_bytes = 4});
  const ModelLease running = fixture.Get(0);
  Waiting b(fixture, 1);
  Settle();
  Waiting late(fixture, 0);
  Settle();
  EXPECT_TRUE(late.waits());
  b.Leave();
  EXPECT_TRUE(late.Wait().ok());
  EXPECT_EQ(fixture.events(), "+a");
  EXPECT_EQ(fixture.pool().Stats()[1].waiting, 0);
}

TEST(ModelPool, OthersGoOnWhileAModelLoads) {
  Fixture fixture({4, 4}, {.memory_bytes = 8});
  ModelLease a = fixture.Get(0);
  fixture.Close();
  Waiting b(fixture, 1);
  fixture.WaitLoading();
  EXPECT_EQ(fixture.pool().Stats()[1].state, ModelState::kLoading);
  a.reset();
  Waiting again(fixture, 0);
  EXPECT_FALSE(again.waits()) << "at once";
  Waiting left(fixture, 1);
  left.Leave();
  EXPECT_TRUE(b.waits());
  fixture.Open();
  EXPECT_TRUE(b.Wait().ok());
}

TEST(ModelPool, ALoadThatAllHaveLeftIsIdleThen) {
  Fixture fixture({4, 4}, {.memory_bytes = 4});
  fixture.Close();
  Waiting a(fixture, 0);
  fixture.WaitLoading();
  a.Leave();
  fixture.Open();
  fixture.Get(1);
  EXPECT_EQ(fixture.events(), "+a-a+b");
}

// ME-04
TEST(ModelPool, ALoadThatFailsIsTriedAgainByTheNextRequest) {
  Fixture fixture({4}, {});
  fixture.FailWith(OutOfMemory("too little"), 1);
  const auto failed = fixture.pool().Get(0);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().message(), "too little");
  EXPECT_EQ(fixture.pool().Stats()[0].failed_loads, 1);
  EXPECT_TRUE(fixture.pool().Get(0).ok());
  EXPECT_EQ(fixture.events(), "!a+a");
}

TEST(ModelPool, AllThatWaitForAFailedLoadAreTold) {
  Fixture fixture({4}, {});
  fixture.FailWith(IoError("gone"), 1);
  fixture.Close();
  Waiting first(fixture, 0);
  Waiting second(fixture, 0);
  fixture.Open();
  EXPECT_EQ(first.Wait().status().message(), "gone");
  EXPECT_EQ(second.Wait().status().message(), "gone");
}

// The machine may have less than the limit.
TEST(ModelPool, OutOfMemoryUnloadsWhatNobodyUses) {
  Fixture fixture({4, 4, 4}, {});
  const ModelLease a = fixture.Get(0);
  fixture.Get(1);
  fixture.FailWith(OutOfMemory("too little"), 1);
  EXPECT_TRUE(fixture.pool().Get(2).ok());
  EXPECT_EQ(fixture.events(), "+a+b-b+c");
  fixture.FailWith(OutOfMemory("too little"), 2);
  EXPECT_FALSE(fixture.pool().Get(1).ok());
  EXPECT_EQ(fixture.events(), "+a+b-b+c-c!b") << "a is in use";
}

TEST(ModelPool, IdleModelsGoAfterAWhile) {
  Fixture fixture({4, 4}, {.idle_unload = milliseconds(20)});
  const ModelLease kept = fixture.Get(0);
  fixture.Get(1);
  for (int i = 0; i < 1000 && fixture.events() != "+a+b-b"; ++i) {
    std::this_thread::sleep_for(milliseconds(2));
  }
  Settle();
  EXPECT_EQ(fixture.events(), "+a+b-b");
  EXPECT_FALSE(fixture.pool().Stats()[1].engine);
  fixture.Get(1);
}

TEST(ModelPool, TooManyThatWaitAreRefused) {
  Fixture fixture({4, 4}, {.max_waiting = 2});
  fixture.Close();
  Waiting first(fixture, 0);
  Waiting second(fixture, 0);
  const auto third = fixture.pool().Ask(0, {});
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.status().code(), StatusCode::kBusy);
  Waiting other(fixture, 1);  // has a queue of its own
  second.Leave();
  Waiting fourth(fixture, 0);
  fixture.Open();
  EXPECT_TRUE(fourth.Wait().ok());
}

TEST(ModelPool, ItsEndTellsThoseThatWait) {
  Fixture fixture({4, 4}, {.memory_bytes = 4});
  ModelLease running = fixture.Get(0);
  Waiting b(fixture, 1);
  Settle();
  fixture.End();
  EXPECT_FALSE(b.waits());
  EXPECT_EQ(b.Wait().status().code(), StatusCode::kBusy);
  running.reset();  // after its pool
}

// Threads that take and leave at random: nobody waits for ever, and the limit holds.
TEST(ModelPool, ManyAtOnce) {
  Fixture fixture({2, 3, 4}, {.memory_bytes = 5});
  std::vector<std::thread> threads;
  std::atomic<int> served{0};
  for (unsigned seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&, seed] {
      unsigned state = seed * 7919 + 1;
      for (int i = 0; i < 30; ++i) {
        state = state * 1103515245 + 12345;
        const size_t model = (state >> 16) % 3;
        if ((state >> 20) % 4 == 0) {
          auto request = fixture.pool().Ask(model, {});
          if (request.ok()) (*request)->Take();
          continue;
        }
        const auto lease = fixture.pool().Get(model);
        if (lease.ok()) ++served;
        int64_t bytes = 0;
        const std::vector<PoolStats> stats = fixture.pool().Stats();
        for (size_t m = 0; m < 3; ++m) {
          if (stats[m].engine) bytes += static_cast<int64_t>(m) + 2;
        }
        EXPECT_LE(bytes, 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(served, 60);
}

}  // namespace
}  // namespace tq::server
