#include "eval/synthetic_source.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "codec/turbo_quant.h"
#include "eval/synthetic_tensors.h"
#include "tensor/half.h"

namespace tq {
namespace {

struct Known {
  const char* name;
  const char* config;
};

constexpr Known kKnown[] = {
#define SYNTHETIC(name, config) {name, config},
#include "eval/synthetic_list.inc"
#undef SYNTHETIC
};

int NumEntries(const SyntheticOptions& options) { return 1 << std::min(options.bits, 4); }

// A small multiplicative generator: the values only have to differ.
class Bits {
 public:
  uint32_t Next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 32);
  }

 private:
  uint64_t state_ = 1;
};

class SyntheticSource : public WeightSource {
 public:
  explicit SyntheticSource(const SyntheticModel& model)
      : path_("synthetic:" + model.name), config_(model.config) {
    for (const float entry : LloydMaxCodebook(NumEntries(model.options)).stored) {
      codebook_.push_back(F32ToF16(entry));
    }
    std::array<int64_t, 6> largest{};
    for (const TensorNeed& need : NeededTensors(model.spec)) {
      for (SourceTensor& tensor : SyntheticTensors(need, model.options)) {
        int64_t& most = largest[static_cast<size_t>(SyntheticKindOf(tensor))];
        most = std::max(most, SyntheticBytes(tensor));
        tensors_.push_back(std::move(tensor));
      }
    }
    std::sort(tensors_.begin(), tensors_.end(),
              [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
    FillBuffers(largest);
    for (SourceTensor& tensor : tensors_) {
      tensor.bytes =
          BufferOf(SyntheticKindOf(tensor)).first(static_cast<size_t>(SyntheticBytes(tensor)));
    }
  }

  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "synthetic"; }
  const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  Result<std::string> ReadDocument(const std::string& name) const override {
    if (name == "config.json") return config_;
    return NotFound(path_ + " has no " + name);
  }
  std::vector<std::string> DocumentNames() const override { return {"config.json"}; }
  void DropPages(const SourceTensor&) const override {}

 private:
  void FillBuffers(const std::array<int64_t, 6>& largest) {
    const auto count = [&](SyntheticKind kind, int64_t size) {
      return static_cast<size_t>(largest[static_cast<size_t>(kind)] / size);
    };
    Bits bits;
    const auto value = [&] { return static_cast<float>(bits.Next() % 2048) / 1024.0f - 1.0f; };
    words_.resize(count(SyntheticKind::kWords, 4));
    for (uint32_t& word : words_) word = bits.Next();
    floats_.resize(count(SyntheticKind::kFloats, 2));
    for (uint16_t& x : floats_) x = F32ToBf16(0.05f * value());
    scales_.resize(count(SyntheticKind::kScales, 2));
    for (uint16_t& x : scales_) x = F32ToF16(0.02f + 0.005f * value());
    signs_.resize(count(SyntheticKind::kSigns, 2));
    for (uint16_t& x : signs_) x = F32ToF16(value() < 0 ? -1.0f : 1.0f);
    ones_.assign(count(SyntheticKind::kOnes, 2), F32ToBf16(1.0f));
  }

  template <typename T>
  static std::span<const std::byte> Bytes(const std::vector<T>& buffer) {
    return std::as_bytes(std::span<const T>(buffer));
  }

  std::span<const std::byte> BufferOf(SyntheticKind kind) const {
    switch (kind) {
      case SyntheticKind::kWords:
        return Bytes(words_);
      case SyntheticKind::kFloats:
        return Bytes(floats_);
      case SyntheticKind::kScales:
        return Bytes(scales_);
      case SyntheticKind::kSigns:
        return Bytes(signs_);
      case SyntheticKind::kOnes:
        return Bytes(ones_);
      case SyntheticKind::kCodebook:
        return Bytes(codebook_);
    }
    return {};
  }

  std::string path_;
  std::string config_;
  std::vector<SourceTensor> tensors_;
  std::vector<uint32_t> words_;
  std::vector<uint16_t> floats_, scales_, signs_, ones_, codebook_;
};

// Lists with an entry per layer: one period is repeated, and `layers` entries stay.
void FitLists(Json& config, int64_t layers) {
  constexpr std::string_view kPerLayer[] = {"layer_types", "num_attention_heads_per_layer",
                                            "mlp_layer_types"};
  for (const std::string_view key : kPerLayer) {
    const auto found = config.find(std::string(key));
    if (found == config.end() || !found->is_array() || found->empty()) continue;
    const Json period = *found;
    *found = Json::array();
    for (int64_t i = 0; i < layers; ++i) {
      found->push_back(period[static_cast<size_t>(i) % period.size()]);
    }
  }
  const auto pattern = config.find("hybrid_override_pattern");
  if (pattern != config.end() && pattern->is_string()) {
    *pattern = pattern->get<std::string>().substr(0, static_cast<size_t>(layers));
  }
}

Result<std::string> ConfigText(const std::string& name) {
  for (const Known& known : kKnown) {
    if (known.name == name) return std::string(known.config);
  }
  if (name.ends_with(".json")) return ReadTextFile(name);
  std::string names;
  for (const std::string& each : SyntheticNames()) names += (names.empty() ? "" : ", ") + each;
  return InvalidArgument("synthetic: expected one of " + names + ", or a config.json, found " +
                         name);
}

}  // namespace

bool IsSyntheticCoded(const TensorNeed& need, const SyntheticOptions& options) {
  return need.role == TensorRole::kLinear && options.bits < 16 && need.shape.size() == 2 &&
         need.shape[0] >= 32 && need.shape[1] % options.group_size == 0;
}

std::vector<SourceTensor> SyntheticTensors(const TensorNeed& need,
                                           const SyntheticOptions& options) {
  const auto tensor = [](std::string name, Shape shape, DType dtype, CodecId codec) {
    SourceTensor out;
    out.name = std::move(name);
    out.shape = std::move(shape);
    out.dtype = dtype;
    out.codec = codec;
    out.is_float_like = dtype != DType::kU32;
    return out;
  };
  if (!IsSyntheticCoded(need, options)) {
    return {tensor(need.name, need.shape, DType::kBf16, CodecId::kBf16)};
  }
  const std::string path = need.name.substr(0, need.name.rfind('.'));
  const int64_t rows = need.shape[0];
  const int64_t cols = need.shape[1];
  const int entries = NumEntries(options);
  return {
      tensor(path + ".weight", {rows, TurboQuantWords(entries, cols)}, DType::kU32, CodecId::kF32),
      tensor(path + ".scales", {rows, cols / options.group_size}, DType::kF16, CodecId::kF16),
      tensor(path + ".codebook", {entries}, DType::kF16, CodecId::kF16),
      tensor(path + ".signs", {cols}, DType::kF16, CodecId::kF16)};
}

SyntheticKind SyntheticKindOf(const SourceTensor& tensor) {
  if (tensor.dtype == DType::kU32) return SyntheticKind::kWords;
  if (tensor.name.ends_with(".scales")) return SyntheticKind::kScales;
  if (tensor.name.ends_with(".signs")) return SyntheticKind::kSigns;
  if (tensor.name.ends_with(".codebook")) return SyntheticKind::kCodebook;
  return tensor.name.ends_with("norm.weight") ? SyntheticKind::kOnes : SyntheticKind::kFloats;
}

int64_t SyntheticBytes(const SourceTensor& tensor) {
  return NumElements(tensor.shape) * static_cast<int64_t>(DTypeBytes(tensor.dtype));
}

std::vector<std::string> SyntheticNames() {
  std::vector<std::string> out;
  for (const Known& known : kKnown) out.emplace_back(known.name);
  std::sort(out.begin(), out.end());
  return out;
}

Result<SyntheticModel> FindSynthetic(const std::string& name, const SyntheticOptions& options) {
  TQ_ASSIGN_OR_RETURN(const std::string text, ConfigText(name));
  TQ_ASSIGN_OR_RETURN(Json config, ParseJson(text, name));
  const bool wrapped = config.is_object() && config.contains("text_config");
  Json& decoder = wrapped ? config["text_config"] : config;
  if (decoder.is_object() && decoder.contains("num_hidden_layers") &&
      decoder["num_hidden_layers"].is_number_integer()) {
    Json& layers = decoder["num_hidden_layers"];
    if (options.layers > 0 && options.layers < layers.get<int64_t>()) layers = options.layers;
    if (layers.get<int64_t>() <= 4096) FitLists(decoder, layers.get<int64_t>());
  }
  TQ_ASSIGN_OR_RETURN(ModelSpec spec, ParseModelSpec(config, {.has_lm_head = true}));
  return SyntheticModel{name, config.dump(), std::move(spec), options};
}

std::unique_ptr<WeightSource> MakeSynthetic(const SyntheticModel& model) {
  return std::make_unique<SyntheticSource>(model);
}

}  // namespace tq
