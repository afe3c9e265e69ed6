// Plans know what a load will make, of every fixture: each weight's bytes and kernel, and the
// scratch memory of a step; and they know it from the headers alone.
#include "plan/sized_model.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cache/kv_cache.h"
#include "engine/workspace.h"
#include "model/step_context.h"
#include "support/checkpoint.h"
#include "weights/source.h"

namespace tq::test {
namespace {

struct Case {
  std::string path;
  std::string backend;
  ActivationMode mode;
};

std::vector<Case> AllCases(bool with_ref) {
  std::vector<std::string> paths;
  for (const char* archive : {"/models/", "/mlx/", "/turboquant/"}) {
    for (const std::string& name : FolderNames(std::string(TQ_TEST_DATA) + archive)) {
      paths.push_back(std::string(TQ_TEST_DATA) + archive + name);
    }
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TQ_TEST_DATA "/gguf")) {
    const bool is_bad = entry.path().string().find("/bad/") != std::string::npos;
    if (entry.path().extension() == ".gguf" && !is_bad) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Case> out;
  for (const std::string& path : paths) {
    out.push_back({path, "cpu", ActivationMode::kInt8});
    out.push_back({path, "cpu", ActivationMode::kF32});
    if (with_ref) out.push_back({path, "ref", ActivationMode::kInt8});
  }
  return out;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.path.substr(std::string(TQ_TEST_DATA).size() + 1);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name + "_" + info.param.backend +
         (info.param.mode == ActivationMode::kF32 ? "_f32" : "_int8");
}

class Sized : public testing::TestWithParam<Case> {};

TEST_P(Sized, WeightsAreAsALoadMakesThem) {
  const auto loaded = LoadOn(GetParam().path, GetParam().backend,
                             {.num_threads = 1, .activations = GetParam().mode, .isa = ""});
  if (!loaded.ok()) GTEST_SKIP() << loaded.status().message();
  const auto sized = SizeModel(*loaded->source, *loaded->backend);
  ASSERT_TRUE(sized.ok()) << sized.status().message();
  const auto expected = loaded->model->Weights();
  const auto found = sized->model->Weights();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_EQ(found[i].weight->bytes(), expected[i].weight->bytes()) << found[i].name;
    EXPECT_STREQ(found[i].weight->kernel(), expected[i].weight->kernel()) << found[i].name;
  }
  EXPECT_EQ(sized->model->mapped_bytes(), loaded->model->mapped_bytes());
  EXPECT_EQ(sized->model->decode_bytes(), loaded->model->decode_bytes());
  EXPECT_GE(sized->load_peak, sized->model->prepared_bytes());
}

// A prefill of `chunk` tokens of one sequence beside a decode of two others.
void RunStep(const Loaded& loaded, int64_t context, int64_t chunk, Scratch& scratch) {
  const int64_t pages = KvCache::PagesFor(context);
  auto cache = KvCache::Create(loaded.model->Needs(KvSettingsFor(*loaded.backend)), 3 * pages, 3);
  ASSERT_TRUE(cache.ok());
  StepPlan plan;
  for (int32_t s = 0; s < 3; ++s) {
    const int64_t n = s == 0 ? chunk : 1;
    SequencePlan sequence{.first_token = plan.num_tokens(),
                          .num_tokens = n,
                          .start_position = context - n,
                          .state_slot = s,
                          .pages = {}};
    ASSERT_TRUE(cache->Allocate(pages, sequence.pages));
    for (int64_t i = 0; i < n; ++i) {
      plan.ids.push_back(static_cast<int32_t>((i * 37 + s * 11) % 250 + 3));
      plan.positions.push_back(static_cast<int32_t>(sequence.start_position + i));
    }
    plan.logits_tokens.push_back(static_cast<int32_t>(plan.num_tokens() - 1));
    plan.sequences.push_back(std::move(sequence));
  }
  std::vector<float> logits(static_cast<size_t>(3 * loaded.model->spec().vocab_size));
  StepContext step{.backend = *loaded.backend, .scratch = scratch, .plan = plan, .ropes = {}};
  loaded.model->Forward(step, *cache, logits.data());
}

class SizedStep : public testing::TestWithParam<Case> {};  // not of ref: its ops use no scratch

TEST_P(SizedStep, NeedsWhatThePlanSays) {
  const auto loaded = LoadOn(GetParam().path, GetParam().backend,
                             {.num_threads = 2, .activations = GetParam().mode, .isa = ""});
  if (!loaded.ok()) GTEST_SKIP() << loaded.status().message();
  const int64_t context = std::min<int64_t>(loaded->model->spec().max_position_embeddings, 250);
  const int64_t chunk = std::min<int64_t>(context, 100);
  const auto planned =
      MeasureWorkspace(*loaded->model, *loaded->backend, KvSettingsFor(*loaded->backend),
                       {.context = context, .prefill_chunk = chunk, .max_sequences = 3});
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  Scratch scratch;
  ASSERT_TRUE(scratch.Reserve(static_cast<size_t>(*planned)));
  RunStep(*loaded, context, chunk, scratch);
  EXPECT_EQ(scratch.capacity_bytes(), static_cast<size_t>(*planned)) << "it grew";
  EXPECT_LE(scratch.peak_bytes(), static_cast<size_t>(*planned));
  EXPECT_GE(scratch.peak_bytes() + (size_t{64} << 10) + scratch.peak_bytes() / 50,
            static_cast<size_t>(*planned));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Sized, testing::ValuesIn(AllCases(true)), CaseName);
INSTANTIATE_TEST_SUITE_P(Fixtures, SizedStep, testing::ValuesIn(AllCases(false)), CaseName);

// Copies a checkpoint with nothing behind the headers: holes of the files' lengths.
void CopyHeaders(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    const std::filesystem::path target = to / entry.path().filename();
    if (entry.path().extension() != ".safetensors") {
      if (entry.is_regular_file()) std::filesystem::copy(entry.path(), target);
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), 8);
    std::string bytes(8 + header, '\0');
    file.seekg(0);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(WriteFile(target, bytes).ok());
    std::filesystem::resize_file(target, entry.file_size());
  }
}

TEST(SizedModel, NeedsNoByteBehindTheHeaders) {
  const std::string folder = testing::TempDir() + "tq_headers_" + std::to_string(::getpid());
  const auto backend = MakeBackend("", {.num_threads = 1, .isa = ""});
  ASSERT_TRUE(backend.ok());
  int compared = 0;
  for (const char* archive : {"/models/", "/mlx/", "/turboquant/"}) {
    for (const std::string& name : FolderNames(std::string(TQ_TEST_DATA) + archive)) {
      const std::string path = std::string(TQ_TEST_DATA) + archive + name;
      const auto whole = OpenSource(path);
      if (!whole.ok()) continue;
      const auto expected = SizeModel(**whole, **backend);
      if (!expected.ok()) continue;
      std::filesystem::remove_all(folder);
      CopyHeaders(path, folder);
      const auto source = OpenSource(folder);
      ASSERT_TRUE(source.ok()) << source.status().message();
      const auto found = SizeModel(**source, **backend);
      ASSERT_TRUE(found.ok()) << path << ": " << found.status().message();
      EXPECT_EQ(found->model->prepared_bytes(), expected->model->prepared_bytes()) << path;
      const StepShape shape = {.context = 128, .prefill_chunk = 64, .max_sequences = 2};
      const auto a = MeasureWorkspace(*expected->model, *expected->backend, KvFormat::kF16, shape);
      const auto b = MeasureWorkspace(*found->model, *found->backend, KvFormat::kF16, shape);
      ASSERT_TRUE(a.ok() && b.ok()) << path;
      EXPECT_EQ(*a, *b) << path;
      ++compared;
    }
  }
  std::filesystem::remove_all(folder);
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace tq::test
