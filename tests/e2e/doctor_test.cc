// `doctor` on good and damaged checkpoints.
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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
  for (const char* id : {"cpu.instructions", "cpu.count", "memory.available", "memory.swap",
                         "memory.bandwidth", "disk.free", "limits.open_files"}) {
    EXPECT_NE(Level(json, id), "") << id;
  }
  EXPECT_EQ(Level(json, "port"), "");
  const Outcome text = RunProgram("doctor --port 0");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.out.find("ok    cpu.instructions"), 0u);
}

TEST(Doctor, AGoodCheckpoint) {
  const Outcome run = RunProgram("doctor --port 0 --json --model " TQ_SOURCE_DIR "/demo");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseOut(run);
  for (const char* id : {"model.files", "model.architecture", "fit.memory", "model.tokenizer",
                         "model.chat_template"})
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

}  // namespace
}  // namespace tq::test
