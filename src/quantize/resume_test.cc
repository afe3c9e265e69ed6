// convert --resume: interrupted anywhere, a conversion goes on from its finished shards and ends
// with the bytes of one that was never interrupted.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "quantize/convert.h"
#include "quantize/work_folder.h"

namespace tq {
namespace {

class ResumeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tq_resume_test_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    auto source = OpenSource(TQ_TEST_DATA "/models/llama");
    ASSERT_TRUE(source.ok()) << source.status().message();
    source_ = std::move(*source);
    options_.num_threads = 1;
    options_.max_shard_bytes = 30'000;
    options_.resume = true;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string out() const { return folder_ + "/out"; }
  std::string partial() const { return folder_ + "/.out.partial"; }

  // Stops after `steps` calls of progress; kOk when it came to its end before.
  Status ConvertUntil(int64_t steps) {
    std::atomic<bool> cancel{false};
    ConvertOptions options = options_;
    options.cancel = &cancel;
    options.progress = [&](int64_t, int64_t) { cancel = --steps <= 0; };
    return Convert(*source_, out(), options).status();
  }

  static std::vector<std::string> Names(const std::string& folder) {
    auto names = ListDirectory(folder);
    EXPECT_TRUE(names.ok()) << names.status().message();
    return names.ok() ? std::move(*names) : std::vector<std::string>();
  }

  static std::map<std::string, std::string> Contents(const std::string& folder) {
    std::map<std::string, std::string> out;
    for (const std::string& name : Names(folder)) {
      out[name] = *ReadTextFile(folder + "/" + name);
    }
    return out;
  }

  std::map<std::string, std::string> Uninterrupted() {
    ConvertOptions options = options_;
    options.resume = false;
    EXPECT_TRUE(Convert(*source_, folder_ + "/whole", options).ok());
    return Contents(folder_ + "/whole");
  }

  std::string folder_;
  std::unique_ptr<WeightSource> source_;
  ConvertOptions options_;
};

TEST_F(ResumeTest, InterruptedAnywhereItEndsWithTheSameBytes) {
  const auto want = Uninterrupted();
  ASSERT_GE(want.size(), 7u);  // five shards, index, config
  int interrupted = 0;
  for (int64_t steps = 1;; steps += 5) {
    const Status first = ConvertUntil(steps);
    if (first.ok()) break;
    ASSERT_EQ(first.code(), StatusCode::kCancelled) << first.message();
    EXPECT_FALSE(FileExists(out()));
    ++interrupted;
    const auto report = Convert(*source_, out(), options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(Contents(out()), want) << "after " << steps << " steps";
    EXPECT_FALSE(FileExists(partial()));
    std::filesystem::remove_all(out());
  }
  EXPECT_GE(interrupted, 6);
}

TEST_F(ResumeTest, ManyInterruptionsInTurn) {
  const auto want = Uninterrupted();
  int runs = 0;
  Status status = Cancelled("");
  // Every run finishes the shard that it is in, at the least.
  for (; status.code() == StatusCode::kCancelled && runs < 100; ++runs) {
    status = ConvertUntil(20);
  }
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GE(runs, 2);
  EXPECT_EQ(Contents(out()), want);
}

TEST_F(ResumeTest, FinishedShardsAreNotWrittenAgain) {
  ASSERT_EQ(ConvertUntil(25).code(), StatusCode::kCancelled);
  std::string first;
  for (const std::string& name : Names(partial())) {
    if (name.starts_with("model-00001-of-")) first = name;
  }
  ASSERT_FALSE(first.empty());
  const auto written = std::filesystem::last_write_time(partial() + "/" + first);
  ASSERT_TRUE(Convert(*source_, out(), options_).ok());
  EXPECT_EQ(std::filesystem::last_write_time(out() + "/" + first), written);
}

TEST_F(ResumeTest, DamagedShardIsWrittenAgain) {
  const auto want = Uninterrupted();
  ASSERT_EQ(ConvertUntil(30).code(), StatusCode::kCancelled);
  int damaged = 0;
  for (const std::string& name : Names(partial())) {
    if (!name.starts_with("model-0000")) continue;
    std::string bytes = *ReadTextFile(partial() + "/" + name);
    if (++damaged == 1) bytes[bytes.size() / 2] ^= 1;
    if (damaged == 2) bytes.pop_back();
    ASSERT_TRUE(WriteFile(partial() + "/" + name, bytes).ok());
  }
  ASSERT_GE(damaged, 2);
  ASSERT_TRUE(Convert(*source_, out(), options_).ok());
  EXPECT_EQ(Contents(out()), want);
}

TEST_F(ResumeTest, WriteErrorKeepsWhatIsFinished) {
  const auto want = Uninterrupted();
  std::string last;
  for (const auto& [name, bytes] : want) {
    if (name.starts_with("model-")) last = name;
  }
  ASSERT_EQ(ConvertUntil(1).code(), StatusCode::kCancelled);
  std::filesystem::create_directories(partial() + "/" + last);  // no file can be created there
  EXPECT_EQ(Convert(*source_, out(), options_).status().code(), StatusCode::kIo);
  EXPECT_FALSE(FileExists(out()));
  // No index, config and card, but the manifest.
  EXPECT_EQ(Names(partial()).size(), want.size() - 2);
  std::filesystem::remove(partial() + "/" + last);
  ASSERT_TRUE(Convert(*source_, out(), options_).ok());
  EXPECT_EQ(Contents(out()), want);
}

TEST_F(ResumeTest, AnotherConversionIsRefused) {
  ASSERT_EQ(ConvertUntil(25).code(), StatusCode::kCancelled);
  const auto error = [&](const WeightSource& source) {
    const auto report = Convert(source, out(), options_);
    EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
    return report.status().message();
  };
  const std::string expected = partial() + " holds an interrupted conversion of another source";
  const ConvertOptions before = options_;
  options_.settings.bits = 4;
  EXPECT_EQ(error(*source_).find(expected), 0u);
  options_ = before;
  options_.rounding = Rounding::kRms;
  EXPECT_EQ(error(*source_).find(expected), 0u);
  options_ = before;
  options_.max_shard_bytes += 1;
  EXPECT_EQ(error(*source_).find(expected), 0u);
  options_ = before;
  auto other = OpenSource(TQ_TEST_DATA "/models/mistral_sliding");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(error(**other).find(expected), 0u);
  // What was there is still of use.
  EXPECT_TRUE(Convert(*source_, out(), options_).ok());
}

TEST_F(ResumeTest, DamagedManifestIsRefused) {
  ASSERT_EQ(ConvertUntil(25).code(), StatusCode::kCancelled);
  for (const char* text : {"", "{", "[]", "{\"version\": 1}",
                           R"({"version": 1, "fingerprint": "x", "files": {"a": 3}})"}) {
    ASSERT_TRUE(WriteFile(partial() + "/.resume", text).ok());
    const auto report = Convert(*source_, out(), options_);
    EXPECT_EQ(report.status().code(), StatusCode::kCorrupt) << text;
    EXPECT_NE(report.status().message().find("to start anew"), std::string::npos);
  }
  std::filesystem::remove(partial() + "/.resume");
  EXPECT_EQ(Convert(*source_, out(), options_).status().code(), StatusCode::kCorrupt);
}

TEST_F(ResumeTest, OneConversionAtATime) {
  const auto folder = WorkFolder::Create(out(), {.resume = true, .fingerprint = "x"});
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_EQ(Convert(*source_, out(), options_).status().code(), StatusCode::kBusy);
}

TEST_F(ResumeTest, ExistingOutputIsRefused) {
  std::filesystem::create_directories(out());
  EXPECT_NE(Convert(*source_, out(), options_).status().message().find("exists already"),
            std::string::npos);
}

}  // namespace
}  // namespace tq
