// What a loaded model takes: the prepared size that `inspect` prints, and little more. Some 300 MB
// of checkpoints are written, so only with TQ_MEMORY_TEST=1.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "codec/turbo_quant.h"
#include "e2e/program.h"
#include "support/byte_tokenizer.h"
#include "tensor/half.h"
#include "weights/safetensors_writer.h"

namespace tq::test {
namespace {

constexpr int64_t kHidden = 1024;
constexpr int64_t kInner = 2048;
constexpr int64_t kVocab = 512;
constexpr int64_t kHeadDim = 128;  // one KV head: a small cache
constexpr int64_t kGroup = 64;

class CheckpointWriter {
 public:
  explicit CheckpointWriter(int bits) : entries_(1 << bits) {}

  // A matrix of zero codes, or a vector of ones.
  void Matrix(const std::string& path, int64_t rows, int64_t cols) {
    Declare(path + ".weight", DType::kU32, {rows, TurboQuantWords(entries_, cols)}, 0);
    Declare(path + ".scales", DType::kF16, {rows, cols / kGroup}, 0x1C1C);  // .004
    Declare(path + ".codebook", DType::kF16, {entries_}, 0);
    Declare(path + ".signs", DType::kF16, {cols}, 0x3C00);
  }
  void Floats(const std::string& name, const Shape& shape) {
    Declare(name, DType::kBf16, shape, 0x3F80);
  }

  void Write(const std::string& folder) {
    auto writer = SafetensorsWriter::Create(folder + "/model.safetensors", declared_, {});
    TQ_CHECK(writer.ok());
    for (size_t i = 0; i < declared_.size(); ++i) {
      const SafetensorsWriter::Tensor& tensor = declared_[i];
      std::vector<uint16_t> values(
          static_cast<size_t>(NumElements(tensor.shape)) * DTypeBytes(tensor.dtype) / 2, fills_[i]);
      if (tensor.name.ends_with(".codebook")) {
        for (size_t k = 0; k < values.size(); ++k) {
          values[k] = F32ToF16(LloydMaxCodebook(entries_).stored[k]);
        }
      }
      TQ_CHECK((*writer)->Append(tensor.name, std::as_bytes(std::span(values))).ok());
    }
    TQ_CHECK((*writer)->Finish().ok());
  }

 private:
  void Declare(const std::string& name, DType dtype, const Shape& shape, uint16_t fill) {
    declared_.push_back({name, dtype, shape});
    fills_.push_back(fill);
  }

  int entries_;
  std::vector<SafetensorsWriter::Tensor> declared_;
  std::vector<uint16_t> fills_;
};

std::string WriteCheckpoint(const TempFolder& temp, int bits, int layers) {
  const std::string folder = temp / (std::to_string(bits) + "-" + std::to_string(layers));
  std::filesystem::create_directory(folder);
  CheckpointWriter writer(bits);
  writer.Floats("model.embed_tokens.weight", {kVocab, kHidden});
  writer.Floats("model.norm.weight", {kHidden});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    writer.Floats(layer + "input_layernorm.weight", {kHidden});
    writer.Floats(layer + "post_attention_layernorm.weight", {kHidden});
    writer.Matrix(layer + "self_attn.q_proj", kHidden, kHidden);
    writer.Matrix(layer + "self_attn.k_proj", kHeadDim, kHidden);
    writer.Matrix(layer + "self_attn.v_proj", kHeadDim, kHidden);
    writer.Matrix(layer + "self_attn.o_proj", kHidden, kHidden);
    writer.Matrix(layer + "mlp.gate_proj", kInner, kHidden);
    writer.Matrix(layer + "mlp.up_proj", kInner, kHidden);
    writer.Matrix(layer + "mlp.down_proj", kHidden, kInner);
  }
  writer.Write(folder);
  const Json config = {{"model_type", "llama"},
                       {"hidden_size", kHidden},
                       {"intermediate_size", kInner},
                       {"num_attention_heads", kHidden / kHeadDim},
                       {"num_key_value_heads", 1},
                       {"head_dim", kHeadDim},
                       {"num_hidden_layers", layers},
                       {"vocab_size", kVocab},
                       {"max_position_embeddings", 512},
                       {"rms_norm_eps", 1e-6},
                       {"rope_theta", 10000.0},
                       {"tie_word_embeddings", true},
                       {"quantization", {{"mode", "turboquant"}, {"rotation", "hadamard"}}}};
  TQ_CHECK(WriteFile(folder + "/config.json", config.dump()).ok());
  TQ_CHECK(WriteFile(folder + "/tokenizer.json", ByteTokenizerJson()).ok());
  TQ_CHECK(WriteFile(folder + "/tokenizer_config.json", ByteTokenizerConfig()).ok());
  return folder;
}

struct Sizes {
  int64_t stored;
  int64_t prepared;
  int64_t peak;
};

Sizes Measure(const std::string& model) {
  const Json inspect = ParseOut(RunProgram("inspect --json --quiet --model " + model));
  const Json run =
      ParseOut(RunProgram("generate --json --quiet --prompt-tokens 11,12,13 "
                          "--max-tokens 4 --ignore-eos --model " +
                          model));
  return {inspect.at("stored_bytes"), inspect.at("prepared_bytes"),
          run.at("stats").at("peak_memory_bytes")};
}

// Beside the same program with a single layer, so that the program itself does not count.
TEST(Memory, LoadedModelIsItsPreparedSize) {
  if (std::getenv("TQ_MEMORY_TEST") == nullptr) GTEST_SKIP() << "set TQ_MEMORY_TEST=1";
  for (const int bits : {2, 3, 4}) {
    const TempFolder temp;
    const int layers = 80 / bits;  // 100 MB or so
    const Sizes one = Measure(WriteCheckpoint(temp, bits, 1));
    const Sizes all = Measure(WriteCheckpoint(temp, bits, layers));
    const int64_t peak = all.peak - one.peak;
    EXPECT_LT(peak, (all.prepared - one.prepared) * 105 / 100) << bits << " bits";
    EXPECT_LT(peak, (all.stored - one.stored) * 105 / 100) << bits << " bits";
  }
}

}  // namespace
}  // namespace tq::test
