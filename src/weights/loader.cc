#include "weights/loader.h"

#include "codec/codec.h"
#include "weights/turbo_quant_tensors.h"

namespace tq {
namespace {

// Buffers that old checkpoints carry and every model recomputes.
bool IsHarmlessExtra(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".k_scale") || name.ends_with(".v_scale");
}

}  // namespace

WeightLoader::WeightLoader(const WeightSource& source, Backend& backend, bool config_rotates,
                           std::function<void(int64_t, int64_t)> progress)
    : source_(source), backend_(backend), config_rotates_(config_rotates), progress_(std::move(progress)) {
  for (const SourceTensor& tensor : source.tensors()) total_bytes_ += static_cast<int64_t>(tensor.bytes.size());
}

void WeightLoader::Use(const SourceTensor& tensor) {
  used_.insert(tensor.name);
  done_bytes_ += static_cast<int64_t>(tensor.bytes.size());
  if (progress_) progress_(done_bytes_, total_bytes_);
}

Result<std::unique_ptr<Weight>> WeightLoader::Matrix(const std::string& name, int64_t rows, int64_t cols) {
  const std::string path = name.substr(0, name.rfind(".weight"));
  if (IsTurboQuant(source_, path)) {
    TQ_ASSIGN_OR_RETURN(const TurboQuantTensors parts,
                        ReadTurboQuant(source_, path, rows, cols, config_rotates_));
    auto weight = backend_.Prepare(parts.matrix);
    if (!weight.ok()) return weight.status().WithContext("tensor " + name);
    for (const char* part : {".weight", ".scales", ".codebook", ".signs"}) {
      const SourceTensor* tensor = source_.Find(path + part);
      Use(*tensor);
      source_.DropPages(*tensor);
    }
    return weight;
  }
  const SourceTensor* tensor = source_.Find(name);
  if (tensor == nullptr) return NotFound("tensor " + name + " is missing from " + source_.path());
  if (source_.Find(path + ".scales") != nullptr) {
    return Unsupported("tensor " + path + ".scales: affine (MLX) weights are not supported: start from the unquantized checkpoint");
  }
  if (tensor->shape != Shape{rows, cols}) {
    return Corrupt("tensor " + name + ": expected " + ShapeString({rows, cols}) + " from config.json, found " +
                   ShapeString(tensor->shape));
  }
  if (!tensor->is_float_like) {
    return Unsupported("tensor " + name + ": expected F32, F16, BF16 or a supported block format, found " +
                       std::string(DTypeName(tensor->dtype)));
  }
  TQ_RETURN_IF_ERROR(CheckFinite(*tensor));
  auto weight = backend_.Prepare(MatrixView(*tensor));
  if (!weight.ok()) return weight.status().WithContext("tensor " + name);
  Use(*tensor);
  source_.DropPages(*tensor);
  return weight;
}

Result<std::vector<float>> WeightLoader::Vector(const std::string& name, int64_t n) {
  const SourceTensor* tensor = source_.Find(name);
  if (tensor == nullptr) return NotFound("tensor " + name + " is missing from " + source_.path());
  if (tensor->shape != Shape{n}) {
    return Corrupt("tensor " + name + ": expected " + ShapeString({n}) + " from config.json, found " +
                   ShapeString(tensor->shape));
  }
  TQ_ASSIGN_OR_RETURN(std::vector<float> values, ReadFloats(*tensor));
  TQ_RETURN_IF_ERROR(CheckFinite(*tensor));
  Use(*tensor);
  return values;
}

Result<Linear> WeightLoader::LoadLinear(const std::string& path, int64_t rows, int64_t cols, bool bias) {
  Linear linear;
  linear.name = path;
  TQ_ASSIGN_OR_RETURN(linear.weight, Matrix(path + ".weight", rows, cols));
  if (bias) {
    TQ_ASSIGN_OR_RETURN(linear.bias, Vector(path + ".bias", rows));
  }
  return linear;
}

Status WeightLoader::CheckAllUsed(bool tied) const {
  std::string names;
  int count = 0;
  for (const SourceTensor& tensor : source_.tensors()) {
    if (used_.contains(tensor.name) || IsHarmlessExtra(tensor.name)) continue;
    if (tied && tensor.name == "lm_head.weight") continue;
    if (++count <= 3) names += (names.empty() ? "" : ", ") + tensor.name;
  }
  if (count == 0) return Status::Ok();
  return Corrupt(source_.path() + ": expected only tensors that config.json calls for, found " +
                 std::to_string(count) + " more: " + names + (count > 3 ? ", ..." : "") +
                 ": config.json and weights do not belong together");
}

}  // namespace tq
