// `plan` on local checkpoints, and on repositories of a local server (hub_server.py).
#include <chrono>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/hub_server.h"
#include "e2e/program.h"
#include "model/spec.h"
#include "support/own_memory.h"
#include "weights/safetensors_writer.h"
#include "weights/tensor_need.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;

const std::string kDemo = TQ_SOURCE_DIR "/demo";

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Plan, FollowedItHolds) {
  const Outcome run = RunProgram("plan --context 1024 --json --model " + kDemo);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["verdict"]["mode"], "resident");
  EXPECT_EQ(json["projection"]["context"], 1024);
  const auto limit = json["flags"]["memory_gb"].get<double>();
  const std::string command = fmt::format(
      "generate --model {} --prompt \"Why?\" --max-tokens 4 --temp 0 --json "
      "--max-context 1024 --prefill-chunk {} ",
      kDemo, json["flags"]["prefill_chunk"].get<int>());
  const Outcome followed = RunProgram(command + fmt::format("--memory-gb {:.6f}", limit));
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  // Much less is refused: the limit was no idle number.
  const Outcome less = RunProgram(command + fmt::format("--memory-gb {:.6f}", limit / 2));
  EXPECT_EQ(CheckError(less, 1, {"memory"}), "");
  // The whole process stays near the plan, though its window is nearly empty here.
  const auto measured = ParseOut(followed)["stats"]["peak_memory_bytes"].get<double>();
  const auto planned = json["projection"]["peak_bytes"].get<double>();
  if (kMemoryIsOurs) {
    EXPECT_LT(measured, planned + std::max(0.03 * planned, 16777216.0));
  }
  const Outcome text = RunProgram("plan --context 1024 --model " + kDemo);
  EXPECT_NE(text.out.find("recommended   --max-context 1024"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("window of 1024 tokens"), std::string::npos) << text.out;
}

TEST(Plan, WhatDoesNotFitSaysByHowMuchAndWhatWould) {
  const Outcome none = RunProgram("plan --json --memory-gb 0.001 --model " + kDemo);
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(ParseOut(none)["verdict"]["mode"], "no-fit");
  EXPECT_EQ(ParseOut(none)["verdict"]["runnable"], false);
  EXPECT_EQ(CheckError({none.exit_code, "", none.err}, 1, {"too much", "window of"}), "");
  const Json all = ParseOut(RunProgram("plan --json --parallel 8 --model " + kDemo));
  const auto peak = all["projection"]["peak_bytes"].get<double>();
  const Outcome tight = RunProgram(
      fmt::format("plan --json --parallel 8 --memory-gb {:.6f} --model {}", 0.9e-9 * peak, kDemo));
  const Json json = ParseOut(tight);
  const auto largest = json["projection"]["largest_context"].get<int64_t>();
  const Outcome smaller =
      RunProgram(fmt::format("plan --json --parallel 8 --context {} --memory-gb {:.6f} --model {}",
                             largest, 0.9e-9 * peak, kDemo));
  if (tight.exit_code == 1) {
    EXPECT_EQ(smaller.exit_code, 0) << smaller.err << largest;
  }
}

// LD-12: damaged index, missing shards, a mistyped path.
TEST(Plan, LD12_IncompleteIsNeverCalledAFit) {
  const TempFolder folder;
  fs::copy(TQ_TEST_DATA "/models/llama", folder / "model");
  const std::string index = folder / "model/model.safetensors.index.json";
  ASSERT_TRUE(WriteFile(index, R"({"metadata": {"total_size": 5000000000}, "weight_map": {
      "model.norm.weight": "model.safetensors", "a": "model-00002-of-00003.safetensors",
      "b": "model-00003-of-00003.safetensors"}})")
                  .ok());
  const Outcome missing = RunProgram("plan --json --model " + (folder / "model"));
  EXPECT_EQ(missing.exit_code, 1);
  const Json json = ParseOut(missing);
  EXPECT_EQ(json["verdict"]["mode"], "incomplete");
  EXPECT_EQ(json["verdict"]["runnable"], false);
  EXPECT_NE(missing.err.find("2 of 3 files"), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find("model-00002-of-00003.safetensors"), std::string::npos);
  EXPECT_NE(missing.err.find("of 5.00 GB"), std::string::npos) << missing.err;

  ASSERT_TRUE(WriteFile(index, "{").ok());
  EXPECT_EQ(CheckError(RunProgram("plan --model " + (folder / "model")), 2, {"index.json"}), "");
  // No server is asked for a path.
  for (const char* path : {"./modles/x", "/modles/x", "~/x", "a/b/c", "modles"}) {
    EXPECT_EQ(CheckError(RunProgram(fmt::format("plan --model '{}'", path), "",
                                    "HF_ENDPOINT=http://127.0.0.1:1"),
                         1, {path, "no such path"}),
              "");
  }
  EXPECT_EQ(RunProgram("plan --context 1 --model " + kDemo).exit_code, 2);
  EXPECT_EQ(RunProgram("plan").exit_code, 2);
}

TEST(Plan, OtherMachinesAndConversions) {
  const Outcome run = RunProgram(
      "plan --json --machine --machine-name mac-mini-16gb --vram-gb 8 --model " TQ_TEST_DATA
      "/models/qwen3_moe");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  EXPECT_EQ(json["machine"]["ram_bytes"], int64_t{16} << 30);
  EXPECT_EQ(json["machine"]["assumed"], true);
  EXPECT_EQ(json["verdict"]["fits_vram"], true);
  ASSERT_GT(json["recipes"].size(), 3u);
  EXPECT_EQ(json["recipes"][0]["recipe"], "");
  double bits = 100;
  for (size_t i = 1; i < json["recipes"].size(); ++i) {
    const Json& recipe = json["recipes"][i];
    EXPECT_LE(recipe["matrix_bits"].get<double>(), bits + 0.1);
    bits = recipe["matrix_bits"].get<double>();
    EXPECT_NEAR(recipe["tokens_per_second_at_most"].get<double>(),
                120e9 / recipe["decode_bytes"].get<double>(), 1.0);
  }
  EXPECT_EQ(RunProgram("plan --machine-name vax --model " + kDemo).exit_code, 2);
}

TEST(Plan, LocallyItTakesNoTime) {
  const auto start = std::chrono::steady_clock::now();
  constexpr int kRuns = 3;
  double best = 100;
  for (int i = 0; i < kRuns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(RunProgram("plan --threads 1 --json --model " + kDemo).exit_code, 0);
    best = std::min(best, Seconds(begin));
  }
  std::printf("best of %d: %.0f ms, %.1f s together\n", kRuns, best * 1e3, Seconds(start));
  EXPECT_LT(best, 1.0);  // 50 ms on a quiet machine
}

// A repository with a shard for each tensor of a small llama: 22 layers have 201 of them.
void WriteShards(const std::string& folder, int layers) {
  const auto text = ReadTextFile(TQ_TEST_DATA "/models/llama/config.json");
  ASSERT_TRUE(text.ok());
  Json config = Json::parse(*text);
  config["num_hidden_layers"] = layers;
  fs::create_directories(folder);
  ASSERT_TRUE(WriteFile(folder + "/config.json", config.dump()).ok());
  ASSERT_TRUE(WriteFile(folder + "/tokenizer.json", std::string(5000, ' ')).ok());
  const auto spec = ParseModelSpec(config, {.has_lm_head = true});
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  const std::vector<TensorNeed> needs = NeededTensors(*spec);
  Json index = {{"metadata", {{"total_size", 1}}}};
  for (size_t i = 0; i < needs.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, needs.size());
    index["weight_map"][needs[i].name] = name;
    auto writer = SafetensorsWriter::Create(
        folder + "/" + name,
        {{.name = needs[i].name, .dtype = DType::kBf16, .shape = needs[i].shape}}, {});
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    const std::vector<std::byte> zeros(static_cast<size_t>(NumElements(needs[i].shape)) * 2);
    ASSERT_TRUE((*writer)->Append(needs[i].name, zeros).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  ASSERT_TRUE(WriteFile(folder + "/model.safetensors.index.json", index.dump()).ok());
}

class PlanRemote : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder();
    WriteShards(*folder_ / "repo", 22);
    WriteShards(*folder_ / "small", 1);
    server_ = new HubServer(*folder_ / "repo");
    small_ = new HubServer(*folder_ / "small");
  }
  static void TearDownTestSuite() {
    delete small_;
    delete server_;
    delete folder_;
  }
  Outcome RunPlan(const std::string& fault, const std::string& flags = "",
                  const std::string& variables = "", const HubServer& server = *small_) const {
    return RunProgram(
        "plan --json --model org/model " + flags, "",
        fmt::format("HF_ENDPOINT={} HF_HOME={} XDG_CACHE_HOME={} {}", server.endpoint(fault),
                    home_ / "hf", home_ / "cache", variables));
  }
  void Forget() const { fs::remove_all(home_ / "cache"); }
  // Only headers and listings are left behind: no folder with holes, nothing half written.
  void ExpectTidy() const {
    for (const auto& entry : fs::recursive_directory_iterator(home_ / "cache")) {
      const std::string name = entry.path().filename();
      EXPECT_TRUE(name == "turboquant" || name == "headers" || name.ends_with(".head") ||
                  name.ends_with(".json"))
          << entry.path();
    }
  }

  static TempFolder* folder_;
  static HubServer* server_;  // 201 shards
  static HubServer* small_;
  TempFolder home_;
};

TempFolder* PlanRemote::folder_ = nullptr;
HubServer* PlanRemote::server_ = nullptr;
HubServer* PlanRemote::small_ = nullptr;

TEST_F(PlanRemote, HeadersSayWhatTheFilesSay) {
  const Outcome remote = RunPlan("none", "", "", *server_);
  ASSERT_EQ(remote.exit_code, 0) << remote.err;
  const Json far = ParseOut(remote);
  const Json near = ParseOut(RunProgram("plan --json --model " + (*folder_ / "repo")));
  EXPECT_EQ(far["model"]["source"], "headers");
  EXPECT_EQ(far["projection"]["weight_bytes"], near["projection"]["weight_bytes"]);
  EXPECT_EQ(far["projection"]["peak_bytes"], near["projection"]["peak_bytes"]);
  EXPECT_GT(far["model"]["downloaded_bytes"].get<int64_t>(), 0);
  EXPECT_LT(far["model"]["downloaded_bytes"].get<int64_t>(), int64_t{201} * 65536);
  ExpectTidy();
  // What is kept is not asked for again, and answers without a network.
  EXPECT_EQ(ParseOut(RunPlan("none", "", "", *server_))["model"]["downloaded_bytes"], 0);
  const Outcome offline = RunPlan("none", "", "HF_HUB_OFFLINE=1 HF_ENDPOINT=http://127.0.0.1:1");
  EXPECT_EQ(offline.exit_code, 0) << offline.err;
  for (const char* key : {"weight_bytes", "peak_bytes", "engine_bytes"}) {
    EXPECT_EQ(ParseOut(offline)["projection"][key], far["projection"][key]) << key;
  }
  Forget();
  const Outcome nothing = RunPlan("none", "", "HF_HUB_OFFLINE=1");
  EXPECT_EQ(CheckError({nothing.exit_code, "", nothing.err}, 1, {"HF_HUB_OFFLINE"}), "");
}

TEST_F(PlanRemote, FaultsThatPass) {
  for (const char* fault : {"busy", "down", "leak", "whole"}) {
    SCOPED_TRACE(fault);
    Forget();
    const Outcome run = RunPlan(fault, "", "HF_TOKEN=secret");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    ExpectTidy();
  }
}

TEST_F(PlanRemote, FaultsThatStay) {
  EXPECT_EQ(CheckError(RunPlan("changed"), 2, {"org/model"}), "");
  ExpectTidy();
  Forget();
  EXPECT_EQ(CheckError(RunPlan("short"), 2, {"changed"}), "");
  Forget();
  EXPECT_EQ(CheckError(RunPlan("gated"), 2, {"401", "HF_TOKEN"}), "");
  const Outcome gated = RunPlan("gated", "", "HF_TOKEN=secret");
  EXPECT_EQ(gated.exit_code, 0) << gated.err;
  EXPECT_EQ(CheckError(RunPlan("none", "--include '*.gguf'"), 1, {"--include"}), "");
}

// 201 files over a link where every answer takes 0.1 s, every new connection 0.2 s.
TEST_F(PlanRemote, ManyShardsOverASlowLink) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome run = RunPlan("slow", "", "", *server_);
  const double seconds = Seconds(start);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::printf("201 shards: %.2f s\n", seconds);
  EXPECT_LT(seconds, 20.0);
}

TEST(PlanRemoteFiles, AGgufAndAMissingShard) {
  const TempFolder folder;
  fs::create_directories(folder / "repo");
  std::string gguf;
  for (const auto& entry : fs::recursive_directory_iterator(TQ_TEST_DATA "/gguf/models/llama")) {
    if (entry.path().extension() == ".gguf") gguf = entry.path();
  }
  ASSERT_NE(gguf, "");
  fs::copy(gguf, folder / "repo/tiny.gguf");
  const HubServer server(folder / "repo");
  const std::string environment =
      fmt::format("HF_ENDPOINT={} HF_HOME={} XDG_CACHE_HOME={}", server.endpoint("none"),
                  folder / "hf", folder / "cache");
  const Outcome run = RunProgram("plan --json --model org/model", "", environment);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json near = ParseOut(RunProgram("plan --json --model " + gguf));
  EXPECT_EQ(ParseOut(run)["projection"]["weight_bytes"], near["projection"]["weight_bytes"]);

  fs::remove(folder / "repo/tiny.gguf");
  fs::copy(TQ_TEST_DATA "/models/llama", folder / "repo", fs::copy_options::recursive);
  ASSERT_TRUE(WriteFile(folder / "repo/model.safetensors.index.json",
                        R"({"weight_map": {"model.norm.weight": "model.safetensors",
                            "x": "model-00002-of-00002.safetensors"}})")
                  .ok());
  const HubServer incomplete(folder / "repo");
  const Outcome missing =
      RunProgram("plan --json --model org/model", "",
                 fmt::format("HF_ENDPOINT={} HF_HOME={} XDG_CACHE_HOME={}",
                             incomplete.endpoint("none"), folder / "hf", folder / "cache2"));
  EXPECT_EQ(missing.exit_code, 1) << missing.err;
  EXPECT_EQ(ParseOut(missing)["verdict"]["mode"], "incomplete");
}

}  // namespace
}  // namespace tq::test
