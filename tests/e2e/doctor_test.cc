// `doctor` on good and damaged checkpoints.
#include <filesystem>
#include <map>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace tq::test {
namespace {

const std::string kLlama = TQ_TEST_DATA "/models/llama";

// The level of the first finding with this id, "" when there is none.
std::string Level(const Json& json, const std::string& id, std::string* found = nullptr) {
  for (const Json& finding : json["findings"]) {
    if (finding["id"] != id) continue;
    if (found != nullptr) *found = finding["found"].get<std::string>();
    EXPECT_EQ(finding["level"] == "ok", finding["advice"] == "") << finding;
    return finding["level"].get<std::string>();
  }
  return "";
}

TEST(Doctor, LooksAtTheMachineAlone) {
  const Outcome run = RunProgram("doctor --port 0 --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  EXPECT_EQ(json["ok"], true);
  for (const char* id : {"build", "cpu.instructions", "cpu.count", "memory.available",
                         "memory.swap", "memory.bandwidth", "disk.free", "limits.open_files"}) {
    EXPECT_NE(Level(json, id), "") << id;
  }
  EXPECT_EQ(Level(json, "port"), "");
  const Outcome text = RunProgram("doctor --port 0");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("ok    cpu.instructions"), std::string::npos) << text.out;
}

TEST(Doctor, AGoodCheckpoint) {
  const Outcome run = RunProgram("doctor --port 0 --json --model " TQ_SOURCE_DIR "/demo");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  for (const char* id : {"model.files", "model.architecture", "model.quantization", "fit.memory",
                         "model.tokenizer", "model.chat_template"})
    EXPECT_EQ(Level(json, id), "ok") << id;
}

TEST(Doctor, NamesEveryDamagedFileAndMissingPart) {
  const TempFolder folder;
  const std::string model = folder / "model";
  std::filesystem::copy(kLlama, model);
  // Two shards, both cut short.
  std::filesystem::copy(model + "/model.safetensors", model + "/other.safetensors");
  for (const char* name : {"/model.safetensors", "/other.safetensors"}) {
    std::filesystem::permissions(model + name, std::filesystem::perms::owner_all);
    std::filesystem::resize_file(model + name, std::filesystem::file_size(model + name) - 1);
  }
  const Outcome cut = RunProgram("doctor --port 0 --json --model " + model);
  EXPECT_EQ(CheckError({cut.exit_code, "", cut.err}, 1, {"checks failed"}), "");
  size_t damaged = 0;
  const Json of_cut = ParseOut(cut);
  for (const Json& finding : of_cut["findings"]) damaged += finding["id"] == "model.file" ? 1 : 0;
  EXPECT_EQ(damaged, 2u);

  const Outcome none = RunProgram("doctor --port 0 --json --model " + (folder / "none"));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(Level(ParseOut(none), "model.path"), "fail");

  // A layer more than there are tensors for, and an architecture of tomorrow.
  const auto config = ReadTextFile(kLlama + "/config.json");
  ASSERT_TRUE(config.ok());
  const auto with = [&](const char* key, const Json& value) {
    Json changed = Json::parse(*config);
    changed[key] = value;
    const std::string path = folder / key;
    std::filesystem::copy(kLlama, path);
    std::filesystem::permissions(path + "/config.json", std::filesystem::perms::owner_all);
    EXPECT_TRUE(WriteFile(path + "/config.json", changed.dump()).ok());
    return ParseOut(RunProgram("doctor --port 0 --json --model " + path));
  };
  std::string found;
  EXPECT_EQ(Level(with("num_hidden_layers", 9), "model.tensors", &found), "fail");
  EXPECT_NE(found.find("layers."), std::string::npos) << found;
  EXPECT_EQ(Level(with("model_type", "llama9"), "model.architecture", &found), "fail");
  EXPECT_NE(found.find("llama9"), std::string::npos) << found;
}

TEST(Doctor, MissingShardsAndAnotherModelsConfig) {
  const TempFolder folder;
  const std::string model = folder / "model";
  std::filesystem::copy(kLlama, model);
  ASSERT_TRUE(WriteFile(model + "/model.safetensors.index.json",
                        R"({"metadata": {"total_size": 9000000000}, "weight_map": {
                            "model.norm.weight": "model.safetensors",
                            "x": "model-00002-of-00002.safetensors"}})")
                  .ok());
  std::string found;
  EXPECT_EQ(Level(ParseOut(RunProgram("doctor --port 0 --json --model " + model)), "model.shards",
                  &found),
            "fail");
  EXPECT_NE(found.find("1 of 2 files are missing: model-00002-of-00002.safetensors"),
            std::string::npos)
      << found;

  // Codes whose config.json says nothing of them, and the other way round; groups of another size.
  const auto with = [&](const std::string& from, const std::string& name, const Json& block) {
    const std::string path = folder / name;
    std::filesystem::copy(from, path);
    std::filesystem::permissions(path + "/config.json", std::filesystem::perms::owner_all);
    Json config = Json::parse(*ReadTextFile(path + "/config.json"));
    for (const char* key : {"quantization", "quantization_config"}) {
      config.erase(key);
      if (!block.is_null()) config[key] = block;
    }
    EXPECT_TRUE(WriteFile(path + "/config.json", config.dump()).ok());
    return Level(ParseOut(RunProgram("doctor --port 0 --json --model " + path)),
                 "model.quantization", &found);
  };
  const std::string coded = TQ_TEST_DATA "/turboquant/dense_b3";
  const Json block = Json::parse(*ReadTextFile(coded + "/config.json"))["quantization"];
  EXPECT_EQ(with(coded, "none", nullptr), "fail") << found;
  EXPECT_EQ(with(kLlama, "plain", block), "fail") << found;
  Json other = block;
  other["group_size"] = 32;
  EXPECT_EQ(with(coded, "other", other), "warn") << found;
  EXPECT_EQ(with(coded, "same", block), "ok") << found;
}

// Nothing is written, changed or made, neither beside the model nor in the folders of caches.
TEST(Doctor, ChangesNothing) {
  const TempFolder folder;
  std::filesystem::copy(TQ_SOURCE_DIR "/demo", folder / "model");
  std::map<std::string, std::filesystem::file_time_type> before;
  const auto look = [&] {
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      times[entry.path()] = entry.last_write_time();
    }
    return times;
  };
  before = look();
  const Outcome run = RunProgram(
      "doctor --port 0 --model " + (folder / "model"), "",
      "HOME=" + (folder / "") + " XDG_CACHE_HOME=" + (folder / "c") + " HF_HOME=" + (folder / "h"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(look() == before);
}

TEST(Doctor, ABusyPortIsNamed) {
  const int handle = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(handle, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(handle, 1), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const Json json = ParseOut(RunProgram("doctor --json --port " + port));
  ::close(handle);
  EXPECT_EQ(Level(json, "port"), "warn");
}

}  // namespace
}  // namespace tq::test
