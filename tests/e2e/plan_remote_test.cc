// `plan` on repositories of a local server (hub_server.py).
#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/hub_server.h"
#include "e2e/program.h"
#include "model/spec.h"
#include "weights/safetensors_writer.h"
#include "weights/tensor_need.h"

namespace tq::test {
namespace {

namespace fs = std::filesystem;

double Seconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
    WriteShards(*folder_ / "sixty", 6);
    WriteShards(*folder_ / "small", 1);
    server_ = new HubServer(*folder_ / "repo");
    sixty_ = new HubServer(*folder_ / "sixty");
    small_ = new HubServer(*folder_ / "small");
  }
  static void TearDownTestSuite() {
    delete small_;
    delete sixty_;
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
  static HubServer* sixty_;   // 57
  static HubServer* small_;
  TempFolder home_;
};

TempFolder* PlanRemote::folder_ = nullptr;
HubServer* PlanRemote::server_ = nullptr;
HubServer* PlanRemote::sixty_ = nullptr;
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

TEST_F(PlanRemote, SixtyShardsOverASlowLink) {
  double best = 100;
  for (int i = 0; i < 2; ++i) {
    Forget();
    const auto start = std::chrono::steady_clock::now();
    const Outcome run = RunPlan("slow", "", "", *sixty_);
    best = std::min(best, Seconds(start));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  std::printf("57 shards: %.2f s\n", best);
  EXPECT_LT(best, 10.0);  // 3 s on a quiet machine
}

TEST_F(PlanRemote, WhatWasReadIsNotAskedForAgain) {
  const Json whole = ParseOut(RunPlan("none", "", "", *sixty_));
  Forget();
  EXPECT_EQ(CheckError(RunPlan("late", "", "", *sixty_), 2, {"503"}), "");
  ExpectTidy();
  const Outcome rest = RunPlan("none", "", "", *sixty_);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_LT(ParseOut(rest)["model"]["downloaded_bytes"].get<int64_t>(),
            whole["model"]["downloaded_bytes"].get<int64_t>() * 3 / 4);
  EXPECT_EQ(ParseOut(rest)["projection"]["peak_bytes"], whole["projection"]["peak_bytes"]);
}

TEST_F(PlanRemote, RedirectsAndAProxy) {
  EXPECT_EQ(RunPlan("hop").exit_code, 0);
  Forget();
  EXPECT_EQ(CheckError(RunPlan("loop"), 2, {"redirect"}), "");
  Forget();
  std::string proxy = small_->endpoint("");
  proxy.pop_back();
  const Outcome run =
      RunPlan("none", "", "HF_ENDPOINT=http://hub.invalid/none no_proxy= http_proxy=" + proxy);
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

// TM-04: a template that cannot be used is in the report, also of a repository.
TEST(PlanRemoteFiles, TM04_ATemplateThatCannotBeUsedIsReported) {
  const TempFolder folder;
  fs::copy(TQ_TEST_DATA "/models/llama", folder / "repo");
  const std::string broken = folder / "repo/chat_template.jinja";
  fs::remove(broken);
  ASSERT_TRUE(WriteFile(broken, "{% for m in messages %}{{ m.content }").ok());
  const HubServer server(folder / "repo");
  const std::string environment =
      fmt::format("HF_ENDPOINT={} HF_HOME={} XDG_CACHE_HOME={}", server.endpoint("none"),
                  folder / "hf", folder / "cache");
  for (const std::string& model : {std::string("org/model"), folder / "repo"}) {
    const Outcome run = RunProgram("plan --json --model " + model, "", environment);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(ParseOut(run)["warnings"].dump().find("chat template"), std::string::npos) << run.out;
  }
  ASSERT_TRUE(WriteFile(broken, "{% for m in messages %}{{ m.content }}{% endfor %}").ok());
  const Outcome good = RunProgram("plan --json --model " + (folder / "repo"));
  EXPECT_EQ(ParseOut(good)["warnings"].dump().find("chat template"), std::string::npos) << good.out;
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
