// Plans against measured memory, of every fixture: the process's resident peak while an engine with
// the planned settings answers requests that fill their windows.
#include "plan/planner.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <malloc.h>

#include "eval/synthetic_source.h"
#include "plan/machines.h"
#include "support/checkpoint.h"
#include "support/own_memory.h"

namespace tq::test {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;

int64_t StatusBytes(const std::string& key) {
  const auto text = ReadTextFile("/proc/self/status", 1 << 16);
  EXPECT_TRUE(text.ok());
  const size_t at = text->find(key + ":");
  return at == std::string::npos ? 0 : std::atoll(text->c_str() + at + key.size() + 1) * 1024;
}

// The peak from now on. False where the system does not allow it.
bool ResetPeak() { return WriteFile("/proc/self/clear_refs", "5").ok(); }

ProgramSize SizeOfProgram(const SizedModel& sized) {
  return {.num_threads = 1,
          .num_matrices = sized.num_matrices,
          .float_bytes = sized.float_bytes,
          .vocab_size = sized.model->spec().vocab_size};
}

GenerateRequest Greedy(int64_t length, int64_t vocab_size, int salt) {
  GenerateRequest request;
  for (int64_t i = 0; i < length; ++i) {
    request.prompt.push_back(static_cast<int32_t>((i * 37 + salt * 11 + 3) % vocab_size));
  }
  request.max_tokens = 8;
  return request;
}

void Finish(TokenStream& stream) {
  while (stream.Next()) {
  }
  EXPECT_TRUE(stream.status().ok()) << stream.status().message();
}

// Greedy answers to prompts that use everything: short ones until every place for a state has had
// one, then as many as the engine takes at a time, each as long as the window.
void FillEngine(Engine& engine, int64_t vocab_size) {
  const EngineOptions& options = engine.options();
  for (int i = 0; i < 2 * static_cast<int>(options.state_checkpoints); ++i) {
    const int64_t length = std::min<int64_t>(options.max_context - 8, kPageTokens + 16);
    auto stream = engine.Submit(Greedy(length, vocab_size, i));
    ASSERT_TRUE(stream.ok()) << stream.status().message();
    Finish(**stream);
  }
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (int s = 0; s < options.max_sequences; ++s) {
    auto stream = engine.Submit(Greedy(options.max_context - 8, vocab_size, 1000 + s));
    ASSERT_TRUE(stream.ok()) << stream.status().message();
    streams.push_back(std::move(*stream));
  }
  for (const auto& stream : streams) Finish(*stream);
}

// The planned and the measured need of an engine that is full. context: 0: the model's own.
void Compare(const WeightSource& source, Backend& backend, int64_t context, int sequences) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "a sanitizer's memory is not planned";
  const auto sized = SizeModel(source, backend);
  ASSERT_TRUE(sized.ok()) << sized.status().message();
  const ModelMemory memory = MemoryOf(*sized->model, *sized->backend, KvSettingsFor(backend));
  const Planner planner(memory, SizeOfProgram(*sized), sized->load_peak);
  EngineOptions options;
  if (context > 0) options.max_context = std::min(context, memory.max_position_embeddings);
  options.max_sequences = sequences;
  options.kv = KvSettingsFor(backend);
  const auto plan = planner.Plan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();

  ::malloc_trim(0);
  const int64_t before = StatusBytes("VmRSS");
  const auto model = Model::Load(source, backend);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ::malloc_trim(0);
  // The pages of a checkpoint's file are the system's, and what a load needs for its time is not
  // what an engine needs.
  if (!ResetPeak()) GTEST_SKIP() << "the system does not reset the peak";
  auto engine = Engine::Create(**model, backend, plan->options);
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  FillEngine(**engine, memory.vocab_size);
  const int64_t measured = StatusBytes("VmHWM") - before;
  // Without the program itself, which the test has as well.
  const int64_t planned = plan->engine.total() + plan->program - ProgramBytes({.num_threads = 1});
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(measured),
              std::max(0.03 * static_cast<double>(measured), static_cast<double>(16 * kMib)));
  std::printf("planned %.1f MiB, measured %.1f MiB\n", static_cast<double>(planned) / kMib,
              static_cast<double>(measured) / kMib);
}

class Measured : public testing::TestWithParam<std::string> {};

std::vector<std::string> Fixtures() {
  std::vector<std::string> out;
  for (const char* archive : {"/models/", "/mlx/", "/turboquant/"}) {
    for (const std::string& name : FolderNames(std::string(TQ_TEST_DATA) + archive)) {
      out.push_back(std::string(TQ_TEST_DATA) + archive + name);
    }
  }
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(TQ_TEST_DATA) + "/gguf/models")) {
    if (entry.path().extension() == ".gguf") out.push_back(entry.path());
  }
  out.push_back(TQ_SOURCE_DIR "/demo");
  return out;
}

TEST_P(Measured, IsAsPlanned) {
  auto backend = MakeBackend("", {.num_threads = 1, .isa = ""});
  ASSERT_TRUE(backend.ok());
  const auto source = OpenSource(GetParam());
  if (!source.ok() || !Model::Load(**source, **backend).ok()) GTEST_SKIP() << "made to be refused";
  Compare(**source, **backend, 256, 2);
}

std::string FixtureName(const testing::TestParamInfo<std::string>& param) {
  std::string name =
      param.param.substr(param.param.rfind('/') + 1) + "_" + std::to_string(param.index);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Measured, testing::ValuesIn(Fixtures()), FixtureName);

// ME-01: a model with a draft head, the window not given. What the engine does not use (the draft
// head's weights, its cache) is not planned either, and 5 % more is more than it takes.
TEST(Measured, ME01_TheDraftHeadIsPlannedAsItIsUsed) {
  auto backend = MakeBackend("", {.num_threads = 1, .isa = ""});
  ASSERT_TRUE(backend.ok());
  const auto source = OpenSource(TQ_SOURCE_DIR "/demo");
  ASSERT_TRUE(source.ok());
  const auto config = (*source)->ReadDocument("config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_NE(config->find("mtp"), std::string::npos) << "no draft head";
  Compare(**source, **backend, 0, 1);
}

// Released shapes, whole and with few layers: gigabytes and minutes, so only on demand
// (TQ_TEST_LARGE=1).
TEST(Measured, ReleasedShapesAreAsPlanned) {
  if (std::getenv("TQ_TEST_LARGE") == nullptr) GTEST_SKIP() << "TQ_TEST_LARGE is not set";
  constexpr int kAll = 0;
  const std::pair<const char*, int> shapes[] = {{"qwen3-4b", kAll},
                                                {"nemotron-3-nano-4b", kAll},
                                                {"qwen3.6-35b-a3b", 3},
                                                {"deepseek-v2-lite", 3},
                                                {"gpt-oss-20b", 4}};
  for (const auto& [name, layers] : shapes) {
    SCOPED_TRACE(name);
    const auto synthetic = FindSynthetic(name, {.bits = 3, .group_size = 64, .layers = layers});
    ASSERT_TRUE(synthetic.ok()) << synthetic.status().message();
    auto backend = MakeBackend("", {.num_threads = 2, .isa = ""});
    ASSERT_TRUE(backend.ok());
    Compare(*MakeSynthetic(*synthetic), **backend, 1024, 2);
  }
}

TEST(Machines, ThisOneHasMemoryAndNamedOnesAreFound) {
  const Machine machine = ThisMachine();
  EXPECT_GT(machine.total_bytes, 100 * kMib);
  EXPECT_GT(machine.usable_bytes, 0);
  EXPECT_LE(machine.usable_bytes, machine.total_bytes);
  EXPECT_GE(machine.most_bytes, machine.usable_bytes);
  const auto mini = FindMachine("mac-mini-16gb");
  ASSERT_TRUE(mini.ok());
  EXPECT_EQ(MachineOf(*mini).total_bytes, int64_t{16} << 30);
  EXPECT_NE(FindMachine("cray-1").status().message().find("mac-mini-16gb"), std::string::npos);
}

}  // namespace
}  // namespace tq::test
