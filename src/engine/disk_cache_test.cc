// The disk prompt cache behind an engine: what a new engine finds of an earlier one's work is worth
// as much as its own, and never changes an answer.
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/file.h"
#include "engine/engine_for_test.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = testing::TempDir() + "disk_cache_" + name;
    fs::remove_all(folder_);
    options_.kv_tokens = 4096;
    options_.max_context = 2048;
    options_.max_sequences = 4;
    options_.prefill_chunk = 128;
    options_.disk_cache = {.folder = folder_, .min_tokens = 100, .save_every = 128, .content = "c"};
  }
  void TearDown() override { fs::remove_all(folder_); }
  static bool recurrent() { return GetParam(); }

  std::unique_ptr<Engine> Open(FakeModel::StepHook hook = nullptr) {
    return MakeEngine(options_, std::move(hook), recurrent());
  }
  // Answers, and is right; returns the tokens that came from a cache.
  static int64_t Ask(Engine& engine, const GenerateRequest& request) {
    const auto stream = MustSubmit(engine, request);
    EXPECT_EQ(ReadAll(*stream), Alone(request));
    return stream->stats().cached_tokens;
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      const fs::path extension = entry.path().extension();
      if (extension == ".page" || extension == ".state") out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  static GenerateRequest NextTurn(const GenerateRequest& request, int64_t more = 20) {
    GenerateRequest next = request;
    for (const int32_t id : Alone(request)) next.prompt.push_back(id);
    for (int64_t i = 0; i < more; ++i) next.prompt.push_back(static_cast<int32_t>(i % 90));
    return next;
  }

  std::string folder_;
  EngineOptions options_;
};

// CA-05: after a restart the same prompt, and the next turn, cost the last few tokens.
TEST_P(DiskCacheTest, RestartRestoresAConversation) {
  const GenerateRequest first = Request(1000, 40);
  EXPECT_EQ(Ask(*Open(), first), 0);
  const auto engine = Open();
  const GenerateRequest next = NextTurn(first);
  // The last id of an answer was never computed.
  EXPECT_EQ(Ask(*engine, next), 1039);
  EXPECT_EQ(engine->stats().disk_hits, 1);
  EXPECT_EQ(engine->stats().disk_loaded_tokens, 1039);
  EXPECT_GT(engine->stats().disk_bytes, 0);
  EXPECT_EQ(engine->stats().disk_dropped_files, 0);
  // The same prompt again: a state was kept before its last tokens.
  EXPECT_GE(Ask(*Open(), first), recurrent() ? 960 : 999);
  EXPECT_GE(Ask(*Open(), NextTurn(next)), 1059);
}

// CA-01, CA-02: the next turn renders the end of the prompt, and the answer, anew.
TEST_P(DiskCacheTest, ARewrittenEndKeepsTheRest) {
  const GenerateRequest first = Request(1000, 30);
  Ask(*Open(), first);
  GenerateRequest next = first;
  next.prompt.resize(996);
  for (int32_t i = 0; i < 40; ++i) next.prompt.push_back(i);
  EXPECT_GE(Ask(*Open(), next), recurrent() ? 960 : 996);
}

// CA-06: a short prompt in between replaces nothing.
TEST_P(DiskCacheTest, ASetOfPrefixesNotTheLastOne) {
  const GenerateRequest a = Request(1000, 10, 1);
  const GenerateRequest b = Request(300, 10, 2);
  {
    const auto engine = Open();
    Ask(*engine, a);
    Ask(*engine, b);
  }
  const auto engine = Open();
  EXPECT_GE(Ask(*engine, NextTurn(a)), 1009);
  EXPECT_GE(Ask(*engine, NextTurn(b)), 309);
}

// CA-07: another model, content or setting never finds it.
TEST_P(DiskCacheTest, AnotherCheckpointFindsNothing) {
  const GenerateRequest request = Request(1000, 10);
  Ask(*Open(), request);
  const size_t files = Files().size();
  options_.disk_cache.content = "a fine-tune of the same shapes";
  EXPECT_EQ(Ask(*Open(), request), 0);
  EXPECT_GT(Files().size(), files);
  options_.disk_cache.content = "c";
  EXPECT_GT(Ask(*Open(), request), 900);
}

TEST_P(DiskCacheTest, ShortConversationsAreNotSaved) {
  Ask(*Open(), Request(80, 15));
  EXPECT_TRUE(Files().empty());
  Ask(*Open(), Request(80, 30));
  EXPECT_FALSE(Files().empty());
}

// A long prefill that was cut off goes on where it was last saved.
TEST_P(DiskCacheTest, AnInterruptedPrefillResumes) {
  const GenerateRequest request = Request(1500, 5);
  Gate gate;
  gate.Allow(8);
  const auto hold = gate.Hook();
  auto engine = Open([&](const StepPlan& plan) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the disk is faster
    hold(plan);
  });
  const auto stream = MustSubmit(*engine, request);
  gate.WaitEntered(9);
  // What a kill would leave: the files of this moment.
  while (engine->stats().disk_written_files < (recurrent() ? 18 : 15)) std::this_thread::yield();
  const std::string killed = folder_ + "_killed";
  fs::remove_all(killed);
  fs::copy(folder_, killed, fs::copy_options::recursive);
  stream->Cancel();
  gate.Open();
  engine.reset();
  options_.disk_cache.folder = killed;
  const int64_t cached = Ask(*Open(), request);
  EXPECT_GE(cached, 768);
  EXPECT_LT(cached, 1100);
  fs::remove_all(killed);
}

TEST_P(DiskCacheTest, WithoutPrefillCheckpointsATurnIsSavedAtItsEnd) {
  options_.disk_cache.prefill_checkpoints = false;
  const GenerateRequest request = Request(1000, 10);
  Ask(*Open(), request);
  EXPECT_GE(Ask(*Open(), NextTurn(request)), 1009);
}

// Every file cut at random, broken, emptied or gone: the answer stays the same.
TEST_P(DiskCacheTest, BrokenFilesCostTimeOnly) {
  const GenerateRequest request = Request(700, 20);
  Ask(*Open(), request);
  std::mt19937 random(7);
  const std::string whole = folder_ + "_whole";
  fs::remove_all(whole);
  fs::rename(folder_, whole);
  for (int round = 0; round < 40; ++round) {
    fs::remove_all(folder_);
    fs::copy(whole, folder_, fs::copy_options::recursive);
    const auto files = Files();
    for (int n = 1 + round % 3; n > 0; --n) {
      const fs::path& file = files[random() % files.size()];
      if (!fs::exists(file)) continue;
      const size_t size = fs::file_size(file);
      switch (random() % 4) {
        case 0:
          fs::remove(file);
          break;
        case 1:
          fs::resize_file(file, random() % size);
          break;
        case 2:
          if (const fs::path& from = files[random() % files.size()];
              fs::exists(from) && from != file) {
            fs::copy_file(from, file, fs::copy_options::overwrite_existing);
          }
          break;
        default: {
          std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
          stream.seekp(static_cast<std::streamoff>(random() % size));
          stream.put(static_cast<char>(random()));
        }
      }
    }
    const auto engine = Open();
    Ask(*engine, NextTurn(request));
    EXPECT_EQ(engine->stats().preemptions, 0);
  }
  fs::remove_all(whole);
}

// CA-03: many prompts with nothing in common stay inside the budget.
TEST_P(DiskCacheTest, OneShotPromptsStayInsideTheBudget) {
  options_.disk_cache.budget_bytes = 200 << 10;
  const auto engine = Open();
  for (int32_t i = 0; i < 30; ++i) {
    Ask(*engine, Request(400, 5, i));
    EXPECT_LE(engine->stats().disk_bytes, options_.disk_cache.budget_bytes);
  }
}

// CA-10: a disk that takes no more: one error, requests go on.
TEST_P(DiskCacheTest, AFullDiskIsReportedAndServingGoesOn) {
  auto engine = Open();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const GenerateRequest first = Request(600, 5, 1);
  const GenerateRequest second = Request(600, 5, 2);
  const auto a = MustSubmit(*engine, first);
  const std::vector<int32_t> first_answer = ReadAll(*a);
  while (engine->stats().disk_write_errors == 0) std::this_thread::yield();
  const auto b = MustSubmit(*engine, second);
  const std::vector<int32_t> second_answer = ReadAll(*b);
  const EngineStats stats = engine->stats();
  const Status error = engine->disk_error();
  engine.reset();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(first_answer, Alone(first));
  EXPECT_EQ(second_answer, Alone(second));
  EXPECT_EQ(stats.disk_write_errors, 1);
  EXPECT_EQ(error.code(), StatusCode::kIo);
  EXPECT_TRUE(Files().empty());
}

// Two engines on one folder, as two processes would be, many requests each.
TEST_P(DiskCacheTest, TwoEnginesAtOnce) {
  options_.disk_cache.budget_bytes = 600 << 10;
  std::atomic<int64_t> hits{0};
  const auto run = [&](int32_t salt) {
    for (int restart = 0; restart < 3; ++restart) {
      const auto engine = Open();
      std::vector<GenerateRequest> requests;
      std::vector<std::shared_ptr<TokenStream>> streams;
      for (int32_t i = 0; i < 8; ++i) {
        requests.push_back(NextTurn(Request(200 + 90 * i, 10, (i + salt) % 5), restart));
        streams.push_back(MustSubmit(*engine, requests.back()));
      }
      for (size_t i = 0; i < streams.size(); ++i) {
        EXPECT_EQ(ReadAll(*streams[i]), Alone(requests[i]));
      }
      hits += engine->stats().disk_hits;
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_GT(hits.load(), 0);
}

// With too few pages for all, sessions give way also while they wait for the disk.
TEST_P(DiskCacheTest, GivingWayWhileLoading) {
  std::vector<GenerateRequest> requests;
  {
    const auto engine = Open();
    for (int32_t i = 0; i < 6; ++i) {
      requests.push_back(Request(500, 60, i));
      Ask(*engine, requests.back());
    }
  }
  options_.kv_tokens = 1200;
  options_.max_context = 1200;
  const auto engine = Open();
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].priority = static_cast<int>(i);
    streams.push_back(MustSubmit(*engine, requests[i]));
  }
  for (size_t i = 0; i < requests.size(); i += 2) streams[i]->Cancel();
  for (size_t i = 1; i < requests.size(); i += 2) {
    EXPECT_EQ(ReadAll(*streams[i]), Alone(requests[i]));
  }
}

// A stream that runs gets its tokens while another request waits for the disk.
TEST_P(DiskCacheTest, RunningStreamsGoOnWhileAnotherLoads) {
  const GenerateRequest stored = Request(1900, 2);
  Ask(*Open(), stored);
  const auto engine = Open();
  const GenerateRequest running = Request(50, 800, 3);
  const auto stream = MustSubmit(*engine, running);
  ASSERT_TRUE(stream->Next().has_value());
  EXPECT_GT(Ask(*engine, stored), 1800);
  std::vector<int32_t> rest = ReadAll(*stream);
  const std::vector<int32_t> want = Alone(running);
  EXPECT_EQ(rest, std::vector<int32_t>(want.begin() + 1, want.end()));
}

TEST_P(DiskCacheTest, SpansOfImagesAreComparedToo) {
  GenerateRequest request = Request(600, 10);
  request.extras = {{300, 350, {5, 6}}};
  Ask(*Open(), request);
  GenerateRequest other = request;
  other.extras[0].key = {5, 7};
  EXPECT_LE(Ask(*Open(), other), 300);
  EXPECT_GE(Ask(*Open(), request), recurrent() ? 576 : 599);
}

TEST_P(DiskCacheTest, NoContentNoCache) {
  options_.disk_cache.content.clear();
  const auto engine =
      Engine::Create(std::make_unique<FakeModel>(4096, nullptr, recurrent()), options_);
  ASSERT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(engine.status().message().find("disk_cache.content"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Layers, DiskCacheTest, testing::Bool(), [](const auto& param) {
  return std::string(param.param ? "Recurrent" : "Attention");
});

}  // namespace
}  // namespace tq
