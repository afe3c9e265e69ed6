// Matrices of every published quantized format: the rows that their writers' own code gives.
#include "weights/matrix_tensors.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "codec/test_tensors.h"
#include "weights/naming/aliases.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Folders(const std::string& archive) {
  std::vector<std::string> out;
  const std::string root = TQ_TEST_DATA "/" + archive;
  if (!fs::is_directory(root)) return out;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (fs::exists(entry.path() / "expected.safetensors")) out.push_back(entry.path().string());
  }
  return out;
}

// Item `index` of the stack at canonical `path`: "...experts.up_proj" -> "...experts.1.up_proj".
std::string ItemPath(std::string path, int64_t index) {
  const std::string number = std::to_string(index);
  if (const size_t at = path.find(".experts."); at != std::string::npos) {
    path.insert(at + 9, number + ".");
  } else {
    path += "." + number;  // heads
  }
  // The first rows of a fused expert are its gate's.
  if (const size_t at = path.find(".gate_up_proj"); at != std::string::npos) {
    path.replace(at, 13, ".gate_proj");
  }
  return path;
}

// One checkpoint and the rows that its writer decoded.
class RowCheck {
 public:
  explicit RowCheck(const std::string& folder)
      : expected_(folder + "/expected.safetensors"), source_(OpenSource(folder)) {
    const Json config = *ParseJson(*ReadTextFile(folder + "/config.json"), "config.json");
    type_ = config.value("model_type", "");
    rotates_ = config.value("/quantization/rotation"_json_pointer, "hadamard") != "none";
  }

  int64_t Run() {
    if (!source_.ok()) {
      ADD_FAILURE() << source_.status().message();
      return 0;
    }
    for (const auto& [key, want] : expected_.all()) {
      if (key.starts_with("dequant/")) Check(key.substr(8), want);
    }
    return checked_;
  }

 private:
  void Check(std::string path, const TestTensors::Tensor& want) {
    int64_t item = -1;
    if (const size_t at = path.find("/expert"); at != std::string::npos) {
      item = std::stoi(path.substr(at + 7));
      path.resize(at);
    }
    std::string name = CanonicalName(path + ".weight", type_);
    name.resize(name.size() - std::strlen(".weight"));
    const std::vector<float> values = want.Floats();
    if (want.shape.size() < 3) {
      return CheckMatrix(item < 0 ? name : ItemPath(name, item), want.cols(), values);
    }
    const size_t size = values.size() / static_cast<size_t>(want.shape[0]);
    for (int64_t i = 0; i < want.shape[0]; ++i) {
      CheckMatrix(ItemPath(name, i), want.cols(),
                  std::span(values).subspan(static_cast<size_t>(i) * size, size));
    }
  }

  void CheckMatrix(const std::string& path, int64_t cols, std::span<const float> want) {
    // Towers are not read; a residual is left out of the expected rows.
    if (IsTowerTensor(path + ".") || (*source_)->Find(path + ".qjl_packed") != nullptr) return;
    const SourceTensor* weight = (*source_)->Find(path + ".weight");
    ASSERT_NE(weight, nullptr) << path;
    auto read = ReadMatrix(**source_, path, weight->shape[0], cols, rotates_);
    ASSERT_TRUE(read.ok()) << read.status().message();
    const std::vector<float> got = MatrixFloats(read->matrix);
    // A rotation is undone in another order than the writer's.
    const float tolerance = read->matrix.format.transform == Transform::kNone ? 0.0f : 2e-7f;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_LE(std::fabs(got[i] - want[i]), tolerance) << path << " value " << i;
    }
    ++checked_;
  }

  TestTensors expected_;
  Result<std::unique_ptr<WeightSource>> source_;
  std::string type_;
  bool rotates_ = false;
  int64_t checked_ = 0;
};

TEST(MatrixTensors, RowsOfEveryCheckpointAreTheWriters) {
  int64_t checked = 0;
  for (const char* archive : {"mlx", "turboquant"}) {
    for (const std::string& folder : Folders(archive)) {
      SCOPED_TRACE(folder);
      checked += RowCheck(folder).Run();
    }
  }
  EXPECT_GE(checked, 20);
}

// Experts in one packed form against the same values in another.
void ExpectSameExperts(const std::string& a, const std::string& b, int64_t min_checked) {
  if (!fs::exists(TQ_TEST_DATA "/" + a) || !fs::exists(TQ_TEST_DATA "/" + b)) return;
  auto source_a = OpenSource(TQ_TEST_DATA "/" + a);
  auto source_b = OpenSource(TQ_TEST_DATA "/" + b);
  ASSERT_TRUE(source_a.ok()) << source_a.status().message();
  ASSERT_TRUE(source_b.ok()) << source_b.status().message();
  int64_t checked = 0;
  for (const SourceTensor& tensor : (*source_b)->tensors()) {
    if (tensor.name.find(".experts.") == std::string::npos) continue;
    const SourceTensor* other = (*source_a)->Find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    if (tensor.name.ends_with(".bias")) {
      EXPECT_EQ(*ReadFloats(*other), *ReadFloats(tensor)) << tensor.name;
    }
    if (!tensor.name.ends_with(".weight")) continue;
    const std::string path = tensor.name.substr(0, tensor.name.size() - 7);
    const int64_t rows = tensor.shape[0];
    const int64_t cols = tensor.is_float_like
                             ? tensor.shape[1]
                             : static_cast<int64_t>(tensor.bytes.size()) * 2 / rows;
    auto read_a = ReadMatrix(**source_a, path, rows, cols, false);
    auto read_b = ReadMatrix(**source_b, path, rows, cols, false);
    ASSERT_TRUE(read_a.ok()) << read_a.status().message();
    ASSERT_TRUE(read_b.ok()) << read_b.status().message();
    EXPECT_EQ(MatrixFloats(read_a->matrix), MatrixFloats(read_b->matrix)) << path;
    ++checked;
  }
  EXPECT_GE(checked, min_checked);
}

TEST(MatrixTensors, PackedExpertsEqualTheirOtherForm) {
  ExpectSameExperts("models/kimi_k3", "models/kimi_k3_bf16", 100);
  ExpectSameExperts("models/gpt_oss_mxfp4", "mlx/gpt_oss_mxfp4", 20);
}

TEST(MatrixTensors, TransposedExpertsAreTurned) {
  const std::string folder = TQ_TEST_DATA "/models/gpt_oss";
  if (!fs::exists(folder)) return;
  auto source = OpenSource(folder);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const TestTensors stored(folder + "/model.safetensors");
  const auto& fused = stored["model.layers.1.mlp.experts.gate_up_proj"];  // [experts, hidden, 2 I]
  const std::vector<float> values = fused.Floats();
  const int64_t hidden = fused.shape[1];
  const int64_t inner = fused.shape[2] / 2;
  for (const int64_t half : {0, 1}) {
    auto read = ReadMatrix(**source,
                           half == 0 ? "model.layers.1.mlp.experts.2.gate_proj"
                                     : "model.layers.1.mlp.experts.2.up_proj",
                           inner, hidden, false);
    ASSERT_TRUE(read.ok()) << read.status().message();
    const std::vector<float> got = MatrixFloats(read->matrix);
    for (int64_t r = 0; r < inner; ++r) {
      for (int64_t c = 0; c < hidden; ++c) {
        const int64_t at = (2 * hidden + c) * 2 * inner + 2 * r + half;
        ASSERT_EQ(got[static_cast<size_t>(r * hidden + c)], values[static_cast<size_t>(at)]);
      }
    }
  }
}

}  // namespace
}  // namespace tq
