// Many short requests at once to real models: samplers, several answers, constraints, cancelled and
// dropped streams, compressed KV caches and the disk cache. No answer is wrong, nothing grows.
// TQ_SOAK_REQUESTS says how many (each of the engines gets so many).
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include "engine/engine.h"
#include "support/checkpoint.h"
#include "support/own_memory.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

struct Setting {
  const char* model;
  const char* kv;
  int64_t kv_min_tokens;
};
constexpr Setting kSettings[] = {{"models/llama", "f16", 0},
                                 {"models/llama", "8/8", 64},
                                 {"models/gemma3_text", "4/3", 0},
                                 {"models/deepseek_v3", "4/4", 64},
                                 {"models/qwen3_next", "8/3", 64}};

int64_t ResidentBytes() {
  long total = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
  std::fclose(file);
  return int64_t{resident} * ::sysconf(_SC_PAGESIZE);
}

// Ids that fall: each at most the one before it; done after `left`.
class Falling final : public Constraint {
 public:
  explicit Falling(size_t left) : left_(left) {}
  void FillMask(std::span<uint32_t> bits) override {
    std::fill(bits.begin(), bits.end(), 0u);
    for (int32_t id = 0; id <= ids_.back(); ++id) {
      bits[static_cast<size_t>(id / 32)] |= 1u << (id % 32);
    }
  }
  void Accept(int32_t id) override {
    EXPECT_LE(id, ids_.back());
    ids_.push_back(id);
  }
  bool IsTerminated() const override { return ids_.size() > left_; }
  void Rollback(size_t num_tokens) override { ids_.resize(ids_.size() - num_tokens); }
  std::unique_ptr<Constraint> Fork() const override { return std::make_unique<Falling>(*this); }

 private:
  Ids ids_ = {299};
  size_t left_;
};

SamplingParams RandomSampling(std::mt19937& random) {
  const auto one_of = [&](auto off, auto on) { return random() % 3 == 0 ? on : off; };
  SamplingParams params;
  params.temperature = one_of(0.8f, 0.0f);
  params.seed = random() % 100;
  params.top_k = one_of(0, 20);
  params.top_p = one_of(1.0f, 0.9f);
  params.min_p = one_of(0.0f, 0.02f);
  params.typical_p = one_of(1.0f, 0.8f);
  params.xtc_probability = one_of(0.0f, 0.5f);
  params.repetition_penalty = one_of(1.0f, 1.2f);
  params.frequency_penalty = one_of(0.0f, 0.2f);
  params.dry_multiplier = one_of(0.0f, 0.8f);
  if (random() % 4 == 0) params.bad_words = {{3}, {4, 5}};
  return params;
}

// A request and what has to come of each of its answers.
struct Known {
  GenerateRequest request;
  std::vector<Ids> answers;
  // The constraint counts what it has seen: every use gets one of its own.
  GenerateRequest Answer(size_t index) const {
    return RequestOfAnswer(request, static_cast<int64_t>(index));
  }
};

Ids ReadAll(TokenStream& stream, size_t most = SIZE_MAX) {
  Ids ids;
  while (ids.size() < most) {
    const auto id = stream.Next();
    if (!id) break;
    ids.push_back(*id);
  }
  return ids;
}

class ModelUnderLoad {
 public:
  ModelUnderLoad(const Setting& setting, size_t index) {
    auto loaded = LoadOn(std::string(TQ_TEST_DATA "/") + setting.model, "",
                         {.num_threads = 1, .activations = ActivationMode::kInt8, .isa = ""});
    TQ_CHECK(loaded.ok());
    loaded_ = std::move(*loaded);
    options_.max_context = 192;
    options_.kv = KvSettingsFor(*loaded_.backend, setting.kv, setting.kv_min_tokens);
    options_.prefix_cache = false;
    options_.max_sequences = 1;
    MakeKnown(static_cast<uint32_t>(index));
    folder_ =
        testing::TempDir() + "soak_" + std::to_string(::getpid()) + "_" + std::to_string(index);
    options_.prefix_cache = true;
    options_.max_sequences = 5;
    options_.kv_tokens = 448;  // too few for all
    options_.max_queue = 8;
    options_.prefill_chunk = 32;
    options_.disk_cache = {.folder = folder_,
                           .budget_bytes = 1 << 20,
                           .min_tokens = 64,
                           .save_every = 64,
                           .content = "soak"};
    Restart();
  }
  ~ModelUnderLoad() {
    engine_.reset();
    fs::remove_all(folder_);
  }
  ModelUnderLoad(const ModelUnderLoad&) = delete;
  ModelUnderLoad& operator=(const ModelUnderLoad&) = delete;

  // Another engine on the same folder.
  void Restart() {
    if (engine_ != nullptr) Count();
    engine_.reset();
    auto engine = Engine::Create(*loaded_.model, *loaded_.backend, options_);
    TQ_CHECK(engine.ok());
    engine_ = std::move(*engine);
  }
  // One request, all of its answers; how much of it is read is up to chance.
  void Ask(std::mt19937& random) {
    const Known& known = known_[random() % known_.size()];
    std::vector<std::shared_ptr<TokenStream>> streams;
    for (size_t i = 0; i < known.answers.size(); ++i) {
      auto stream = engine_->Submit(known.Answer(i));
      while (!stream.ok()) {
        ASSERT_EQ(stream.status().code(), StatusCode::kBusy);
        std::this_thread::yield();
        stream = engine_->Submit(known.Answer(i));
      }
      streams.push_back(*stream);
    }
    const auto what = random() % 8;
    if (what == 0) return;  // dropped
    for (size_t i = 0; i < streams.size(); ++i) {
      const size_t most = what == 1 ? random() % 4 : SIZE_MAX;
      const Ids ids = ReadAll(*streams[i], most);
      const Ids& want = known.answers[i];
      if (what == 1) {
        streams[i]->Cancel();
        ASSERT_TRUE(ids.size() <= want.size() && std::equal(ids.begin(), ids.end(), want.begin()));
      } else {
        ASSERT_EQ(ids, want);
      }
    }
  }
  void WaitIdle() {
    while (engine_->stats().running + engine_->stats().waiting > 0) std::this_thread::yield();
  }
  void Count() {
    const EngineStats stats = engine_->stats();
    disk_hits_ += stats.disk_hits;
    prefix_hits_ += stats.prefix_hits;
    preemptions_ += stats.preemptions;
    EXPECT_EQ(stats.free_pages, stats.total_pages);
    EXPECT_EQ(stats.disk_write_errors, 0);
    EXPECT_EQ(stats.disk_dropped_files, 0);
    EXPECT_LE(stats.disk_bytes, options_.disk_cache.budget_bytes);
  }
  int64_t disk_hits() const { return disk_hits_; }
  int64_t prefix_hits() const { return prefix_hits_; }
  int64_t preemptions() const { return preemptions_; }

 private:
  void MakeKnown(uint32_t seed) {
    std::mt19937 random(seed);
    auto engine = Engine::Create(*loaded_.model, *loaded_.backend, options_);
    TQ_CHECK(engine.ok());
    for (int i = 0; i < 24; ++i) {
      Known known;
      // Three beginnings; some prompts are long enough for the disk.
      const int length = 2 + static_cast<int>(random() % 60) + (i % 3 == 0 ? 70 : 0);
      for (int at = 0; at < length; ++at) {
        known.request.prompt.push_back((at * 37 + at * at + i % 3 * 11 + (at > 66 ? i : 0)) % 300);
      }
      known.request.max_tokens = 1 + static_cast<int64_t>(random() % 10);
      known.request.sampling = RandomSampling(random);
      known.request.priority = static_cast<int>(random() % 3);
      known.request.num_logprobs = static_cast<int>(random() % 4) - 1;
      if (i % 5 == 0) {
        known.request.constraint = std::make_shared<Falling>(1 + random() % 8);
        known.request.sampling.bad_words.clear();
      }
      const size_t answers = i % 4 == 0 ? 3 : 1;
      for (size_t answer = 0; answer < answers; ++answer) {
        auto stream = (*engine)->Submit(known.Answer(answer));
        TQ_CHECK(stream.ok());
        known.answers.push_back(ReadAll(**stream));
        EXPECT_FALSE(known.answers.back().empty());
      }
      known_.push_back(std::move(known));
    }
  }

  Loaded loaded_;
  EngineOptions options_;
  std::string folder_;
  std::vector<Known> known_;
  std::unique_ptr<Engine> engine_;
  int64_t disk_hits_ = 0;
  int64_t prefix_hits_ = 0;
  int64_t preemptions_ = 0;
};

TEST(Soak, ShortRequestsOfAllKinds) {
  const char* wanted = std::getenv("TQ_SOAK_REQUESTS");
  const int requests = wanted == nullptr ? 160 : std::max(8, std::atoi(wanted));
  constexpr int kThreads = 4;
  constexpr int kRounds = 8;  // between two, each engine is made anew
  // Each new thread may get an arena of the allocator; they are filled one by one and look like a
  // leak for a long time.
  ::mallopt(M_ARENA_MAX, 1);
  std::vector<std::unique_ptr<ModelUnderLoad>> models;
  for (size_t i = 0; i < std::size(kSettings); ++i) {
    models.push_back(std::make_unique<ModelUnderLoad>(kSettings[i], i));
  }
  std::vector<int64_t> resident;
  for (int round = 0; round < kRounds; ++round) {
    const auto client = [&](uint32_t seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < requests / kRounds / kThreads; ++i) {
        for (const auto& model : models) {
          model->Ask(random);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back(client, static_cast<uint32_t>(round * kThreads) + thread);
    }
    for (std::thread& thread : threads) thread.join();
    if (HasFatalFailure()) return;
    for (const auto& model : models) {
      model->WaitIdle();
      model->Restart();
    }
    resident.push_back(ResidentBytes());
    if (wanted != nullptr) {
      std::printf("%d requests: %.1f MiB\n", (round + 1) * requests / kRounds,
                  static_cast<double>(resident.back()) / 0x1p20);
    }
  }
  int64_t preemptions = 0;
  for (const auto& model : models) {
    EXPECT_GT(model->prefix_hits(), 0);
    EXPECT_GT(model->disk_hits(), 0);
    preemptions += model->preemptions();
  }
  EXPECT_GT(preemptions, 0);
  if (!kMemoryIsOurs) return;
  // The second half does not grow, but for what lies about in pieces.
  constexpr int64_t kSlack = int64_t{2} << 20;
  EXPECT_LE(*std::max_element(resident.begin() + kRounds / 2, resident.end()),
            resident[kRounds / 2 - 1] + kSlack);
}

}  // namespace
}  // namespace tq::test
