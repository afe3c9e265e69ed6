// `pull` against a local server with faults (hub_server.py).
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/hub_server.h"
#include "e2e/program.h"

namespace tq::test {
namespace {

class PullTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder();
    const std::string repo = *folder_ / "repo";
    std::filesystem::copy(TQ_SOURCE_DIR "/demo", repo);
    std::filesystem::create_directories(repo + "/sub dir");
    EXPECT_TRUE(WriteFile(repo + "/sub dir/notes \xC3\xA9.txt", "notes").ok());
    EXPECT_TRUE(WriteFile(repo + "/pytorch_model.bin", "another program's").ok());
    EXPECT_TRUE(WriteFile(repo + "/empty.txt", "").ok());
    server_ = new HubServer(repo);
  }
  static void TearDownTestSuite() {
    delete server_;
    delete folder_;
  }

  std::string home() const { return home_ / "home"; }
  // Runs `pull` with chunks that cut the weights in many pieces.
  Outcome RunPull(const std::string& fault, const std::string& flags = "",
                  const std::string& variables = "") const {
    const std::string environment =
        fmt::format("HF_ENDPOINT={} HF_HOME={} {}", server_->endpoint(fault), home(), variables);
    return RunProgram("pull org/model --chunk-mb 0.3 " + flags, "", environment);
  }
  void ExpectSameFiles(const std::string& snapshot) const {
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json",
                             "sub dir/notes \xC3\xA9.txt", "empty.txt"}) {
      const auto expected = ReadTextFile(*folder_ / "repo" + "/" + name);
      const auto found = ReadTextFile(snapshot + "/" + name);
      ASSERT_TRUE(found.ok()) << name << " " << found.status().message();
      EXPECT_TRUE(*expected == *found) << name;
    }
  }

  static TempFolder* folder_;
  static HubServer* server_;
  TempFolder home_;
};

TempFolder* PullTest::folder_ = nullptr;
HubServer* PullTest::server_ = nullptr;

std::string Snapshot(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out.substr(0, outcome.out.find('\n'));
}

TEST_F(PullTest, ARepositoryLandsInTheUsualCache) {
  const std::string snapshot = Snapshot(RunPull("none"));
  EXPECT_EQ(snapshot, home() + "/hub/models--org--model/snapshots/c0ffee" + std::string(34, '0'));
  ExpectSameFiles(snapshot);
  EXPECT_FALSE(FileExists(snapshot + "/pytorch_model.bin"));
  EXPECT_TRUE(std::filesystem::is_symlink(snapshot + "/sub dir/notes \xC3\xA9.txt"));
  // Nothing is left of the way, nothing is downloaded again, and commands find it by its name.
  const auto again = ParseJson(RunPull("none", "--json").out, "stdout");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)["downloaded_bytes"], 0);
  EXPECT_EQ((*again)["files_left_out"], 1);
  for (const auto& entry :
       std::filesystem::directory_iterator(home() + "/hub/models--org--model/blobs")) {
    EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << entry.path();
  }
  const std::string environment = "HF_HOME=" + home();
  const Outcome tokens = RunProgram("tokenize --model org/model hello", "", environment);
  EXPECT_EQ(tokens.exit_code, 0) << tokens.err;
  const Outcome unknown = RunProgram("tokenize --model org/other hello", "", environment);
  EXPECT_NE(unknown.err.find("turboquant pull org/other"), std::string::npos) << unknown.err;
  EXPECT_EQ(Snapshot(RunProgram("pull org/model", "", environment + " HF_HUB_OFFLINE=1")),
            snapshot);
}

TEST_F(PullTest, FaultsThatPass) {
  for (const char* fault : {"cut", "busy", "down", "leak"}) {
    SCOPED_TRACE(fault);
    std::filesystem::remove_all(home());
    ExpectSameFiles(Snapshot(RunPull(fault, "", "HF_TOKEN=secret")));
  }
}

TEST_F(PullTest, FaultsThatStay) {
  EXPECT_EQ(CheckError(RunPull("changed", "--include model.safetensors"), 1, {"hash"}), "");
  EXPECT_EQ(CheckError(RunPull("short", "--include model.safetensors"), 1, {"changed"}), "");
  EXPECT_EQ(CheckError(RunPull("gated"), 1, {"401", "HF_TOKEN"}), "");
  EXPECT_EQ(CheckError(RunPull("none", "--include '*.gguf'"), 1, {"--include"}), "");
  const std::string environment =
      fmt::format("HF_ENDPOINT={} HF_HOME={}", server_->endpoint("none"), home());
  EXPECT_EQ(CheckError(RunProgram("pull org/none", "", environment), 1, {"404"}), "");
  EXPECT_EQ(CheckError(RunProgram("pull org", "", environment), 1, {"ORG/NAME"}), "");
  EXPECT_EQ(CheckError(RunProgram("pull org/model --max-retries 1", "",
                                  "HF_ENDPOINT=http://127.0.0.1:1 HF_HOME=" + home()),
                       1, {"127.0.0.1"}),
            "");
  // Nothing of these is found by the name.
  EXPECT_NE(RunProgram("tokenize --model org/model x", "", "HF_HOME=" + home()).exit_code, 0);
  ExpectSameFiles(Snapshot(RunPull("gated", "", "HF_TOKEN=secret")));
}

TEST_F(PullTest, AnInterruptedDownloadGoesOn) {
  const Outcome half = RunPull("half", "--connections 1 --max-retries 0");
  EXPECT_EQ(CheckError(half, 1, {"503"}), "");
  const auto rest = ParseJson(RunPull("none", "--json").out, "stdout");
  ASSERT_TRUE(rest.ok());
  // Half of the weights, and what came behind them.
  const auto total = (*rest)["total_bytes"].get<double>();
  EXPECT_LT((*rest)["downloaded_bytes"].get<double>(), 0.6 * total);
  EXPECT_GT((*rest)["downloaded_bytes"].get<double>(), 0.4 * total);
  ExpectSameFiles((*rest)["path"]);
}

}  // namespace
}  // namespace tq::test
