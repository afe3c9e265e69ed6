#include "eval/synthetic_source.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "codec/turbo_quant.h"
#include "model/spec.h"
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
  SyntheticSource(std::string name, std::string config, const ModelSpec& model,
                  const SyntheticOptions& options)
      : path_("synthetic:" + name), config_(std::move(config)) {
    const int entries = 1 << std::min(options.bits, 4);
    for (const float entry : LloydMaxCodebook(entries).stored) codebook_.push_back(F32ToF16(entry));
    for (const TensorNeed& need : NeededTensors(model)) Add(need, options, entries);
    std::sort(tensors_.begin(), tensors_.end(),
              [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
    FillBuffers();
    for (SourceTensor& tensor : tensors_) Attach(tensor);
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
  enum class Kind : uint8_t { kWords, kFloats, kScales, kSigns, kOnes, kCodebook };

  static Kind KindOf(const SourceTensor& tensor) {
    if (tensor.dtype == DType::kU32) return Kind::kWords;
    if (tensor.name.ends_with(".scales")) return Kind::kScales;
    if (tensor.name.ends_with(".signs")) return Kind::kSigns;
    if (tensor.name.ends_with(".codebook")) return Kind::kCodebook;
    return tensor.name.ends_with("norm.weight") ? Kind::kOnes : Kind::kFloats;
  }

  void Push(const std::string& name, Shape shape, DType dtype, CodecId codec) {
    SourceTensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.dtype = dtype;
    tensor.codec = codec;
    tensor.is_float_like = dtype == DType::kF16 || dtype == DType::kBf16;
    const size_t bytes = static_cast<size_t>(NumElements(tensor.shape)) * DTypeBytes(dtype);
    size_t& most = bytes_of_[static_cast<size_t>(KindOf(tensor))];
    most = std::max(most, bytes);
    tensors_.push_back(std::move(tensor));
  }

  void Add(const TensorNeed& need, const SyntheticOptions& options, int entries) {
    const bool quantized = need.role == TensorRole::kLinear && options.bits < 16 &&
                           need.shape.size() == 2 && need.shape[0] >= 32 &&
                           need.shape[1] % options.group_size == 0;
    if (!quantized) {
      Push(need.name, need.shape, DType::kBf16, CodecId::kBf16);
      return;
    }
    const std::string path = need.name.substr(0, need.name.rfind('.'));
    const int64_t rows = need.shape[0];
    const int64_t cols = need.shape[1];
    Push(path + ".weight", {rows, TurboQuantWords(entries, cols)}, DType::kU32, CodecId::kF32);
    Push(path + ".scales", {rows, cols / options.group_size}, DType::kF16, CodecId::kF16);
    Push(path + ".codebook", {entries}, DType::kF16, CodecId::kF16);
    Push(path + ".signs", {cols}, DType::kF16, CodecId::kF16);
  }

  size_t Halves(Kind kind) const { return bytes_of_[static_cast<size_t>(kind)] / 2; }

  void FillBuffers() {
    Bits bits;
    const auto value = [&] { return static_cast<float>(bits.Next() % 2048) / 1024.0f - 1.0f; };
    words_.resize(bytes_of_[static_cast<size_t>(Kind::kWords)] / 4);
    for (uint32_t& word : words_) word = bits.Next();
    floats_.resize(Halves(Kind::kFloats));
    for (uint16_t& x : floats_) x = F32ToBf16(0.05f * value());
    scales_.resize(Halves(Kind::kScales));
    for (uint16_t& x : scales_) x = F32ToF16(0.02f + 0.005f * value());
    signs_.resize(Halves(Kind::kSigns));
    for (uint16_t& x : signs_) x = F32ToF16(value() < 0 ? -1.0f : 1.0f);
    ones_.assign(Halves(Kind::kOnes), F32ToBf16(1.0f));
  }

  template <typename T>
  static std::span<const std::byte> Bytes(const std::vector<T>& buffer) {
    return std::as_bytes(std::span<const T>(buffer));
  }

  std::span<const std::byte> BufferOf(Kind kind) const {
    switch (kind) {
      case Kind::kWords:
        return Bytes(words_);
      case Kind::kFloats:
        return Bytes(floats_);
      case Kind::kScales:
        return Bytes(scales_);
      case Kind::kSigns:
        return Bytes(signs_);
      case Kind::kOnes:
        return Bytes(ones_);
      case Kind::kCodebook:
        return Bytes(codebook_);
    }
    return {};
  }

  void Attach(SourceTensor& tensor) const {
    const size_t n = static_cast<size_t>(NumElements(tensor.shape)) * DTypeBytes(tensor.dtype);
    tensor.bytes = BufferOf(KindOf(tensor)).first(n);
  }

  std::string path_;
  std::string config_;
  std::vector<SourceTensor> tensors_;
  std::array<size_t, 6> bytes_of_{};  // largest tensor of each kind
  std::vector<uint32_t> words_;
  std::vector<uint16_t> floats_, scales_, signs_, ones_, codebook_;
};

}  // namespace

std::vector<std::string> SyntheticNames() {
  std::vector<std::string> out;
  for (const Known& known : kKnown) out.emplace_back(known.name);
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::unique_ptr<WeightSource>> MakeSynthetic(const std::string& name,
                                                    const SyntheticOptions& options) {
  const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Known& candidate) { return candidate.name == name; });
  if (known == std::end(kKnown)) {
    std::string names;
    for (const std::string& each : SyntheticNames()) names += (names.empty() ? "" : ", ") + each;
    return InvalidArgument("synthetic: expected one of " + names + ", found " + name);
  }
  TQ_ASSIGN_OR_RETURN(Json config, ParseJson(known->config, name));
  if (options.layers > 0 && options.layers < config["num_hidden_layers"].get<int64_t>()) {
    config["num_hidden_layers"] = options.layers;
    if (config.contains("hybrid_override_pattern")) {
      const auto pattern = config["hybrid_override_pattern"].get<std::string>();
      config["hybrid_override_pattern"] = pattern.substr(0, static_cast<size_t>(options.layers));
    }
  }
  TQ_ASSIGN_OR_RETURN(const ModelSpec model, ParseModelSpec(config, {.has_lm_head = true}));
  return std::unique_ptr<WeightSource>(
      std::make_unique<SyntheticSource>(name, config.dump(), model, options));
}

}  // namespace tq
