#include "quantize/convert_plan.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "codec/turbo_quant.h"
#include "quantize/output_names.h"
#include "weights/matrix_tensors.h"

namespace tq {
namespace {

int64_t TensorBytes(const SafetensorsWriter::Tensor& tensor) {
  return NumElements(tensor.shape) * static_cast<int64_t>(DTypeBytes(tensor.dtype));
}

// Plain floats keep their type; block formats become f16, which holds their 8-bit-ish values better
// than bf16.
DType CopyType(const SourceTensor& tensor) {
  const bool plain = tensor.codec == CodecId::kF32 || tensor.codec == CodecId::kBf16;
  return tensor.is_float_like && !plain ? DType::kF16 : tensor.dtype;
}

Shape Stacked(size_t count, bool is_stack, Shape shape) {
  if (is_stack) shape.insert(shape.begin(), static_cast<int64_t>(count));
  return shape;
}

class Planner {
 public:
  Planner(const WeightSource& source, const ModelSpec& model, const ConvertOptions& options,
          std::vector<std::string>& warnings)
      : source_(source), model_(model), options_(options), warnings_(warnings) {}

  Status Add(const TensorNeed& need) {
    const ExpertPath expert = ParseExpertPath(need.name, model_.model_type);
    if (!expert.is_expert) return AddTensor(need, OutputName(need.name, model_.model_type), false);
    const std::string name = expert.stack + "." + expert.part;
    const auto found = stacks_.find(name);
    if (found == stacks_.end()) {
      stacks_.emplace(name, planned_.size());
      return AddTensor(need, name, true);
    }
    ConvertItem& item = planned_[found->second].item;
    item.sources.push_back(item.quantize || item.decode ? PathOf(need.name) : need.name);
    return Status::Ok();
  }

  std::vector<ConvertItem> Finish() {
    std::vector<ConvertItem> items;
    for (Planned& planned : planned_) {
      SetOutputs(planned);
      for (const auto& output : planned.item.outputs)
        planned.item.output_bytes += TensorBytes(output);
      items.push_back(std::move(planned.item));
    }
    return items;
  }

 private:
  // An item whose sources may still grow.
  struct Planned {
    ConvertItem item;
    std::string name;  // of the output tensor, when it is a copy
    Shape shape;       // of one source
    bool is_stack;
  };

  static std::string PathOf(const std::string& name) { return name.substr(0, name.rfind('.')); }

  Status AddTensor(const TensorNeed& need, const std::string& output, bool is_stack) {
    ConvertItem item;
    item.path = PathOf(output);
    const bool matrix = need.shape.size() == 2;
    item.rows = matrix ? need.shape[0] : 1;
    item.cols = need.shape.empty() ? 1 : need.shape.back();
    const bool linear = need.role == TensorRole::kLinear && matrix;
    const int group = GroupForPath(options_.settings, item.path);
    item.quantize = linear && IsQuantizable(need.shape[0], need.shape[1], group);
    if (item.quantize) {
      item.sources = {PathOf(need.name)};
      item.spec = {
          .codebook_entries = 1 << BitsForPath(options_.settings, item.path),
          .group = group,
          .rotate = options_.settings.rotate,
          .seed = TurboQuantLayerSeed(options_.settings.rotation_seed, item.path),
          .search_scale = options_.rounding == Rounding::kSearch || !options_.calibration.empty()};
      quantized_.insert(item.path);
    } else {
      if (linear && need.shape[1] % group != 0) {
        warnings_.push_back(
            fmt::format("{}: {} columns are no multiple of the group {}: kept in full precision",
                        item.path, need.shape[1], group));
      }
      TQ_RETURN_IF_ERROR(PlanCopy(need, item));
    }
    planned_.push_back({std::move(item), output, need.shape, is_stack});
    return Status::Ok();
  }

  Status PlanCopy(const TensorNeed& need, ConvertItem& item) {
    const SourceTensor* tensor = source_.Find(need.name);
    const bool quantized_source =
        tensor == nullptr || (!tensor->is_float_like && tensor->dtype != DType::kI64);
    if (quantized_source && need.shape.size() == 2 && need.name.ends_with(".weight")) {
      item.decode = true;
      item.dtype = DType::kF32;
      item.sources = {PathOf(need.name)};
      return Status::Ok();
    }
    if (tensor == nullptr)
      return NotFound("tensor " + need.name + " is missing from " + source_.path());
    if (tensor->shape != need.shape) {
      return Corrupt("tensor " + need.name + ": expected " + ShapeString(need.shape) +
                     " from config.json, found " + ShapeString(tensor->shape));
    }
    if (!tensor->is_float_like && tensor->dtype != DType::kI64) {
      return Unsupported("tensor " + need.name + ": expected floats to keep, found " +
                         std::string(DTypeName(tensor->dtype)));
    }
    item.sources = {need.name};
    // The published loader wants the bias of a quantized matrix in f16.
    const bool f16_bias = need.role == TensorRole::kBias && quantized_.contains(item.path);
    item.dtype = f16_bias ? DType::kF16 : CopyType(*tensor);
    item.fold_one = FoldsNorm(model_, need);
    return Status::Ok();
  }

  static void SetOutputs(Planned& planned) {
    ConvertItem& item = planned.item;
    const size_t count = item.sources.size();
    const bool stack = planned.is_stack;
    if (item.quantize) {
      const int entries = item.spec.codebook_entries;
      const Shape words = {item.rows, TurboQuantWords(entries, item.cols)};
      const Shape scales = {item.rows, item.cols / item.spec.group};
      item.outputs = {{item.path + ".weight", DType::kU32, Stacked(count, stack, words)},
                      {item.path + ".scales", DType::kF16, Stacked(count, stack, scales)},
                      {item.path + ".codebook", DType::kF16, {entries}},
                      {item.path + ".signs", DType::kF16, {item.cols}}};
      return;
    }
    Shape shape = planned.shape;
    if (IsConvolution(planned.name)) shape.push_back(1);
    item.outputs = {{planned.name, item.dtype, Stacked(count, stack, shape)}};
  }

  const WeightSource& source_;
  const ModelSpec& model_;
  const ConvertOptions& options_;
  std::vector<std::string>& warnings_;
  std::vector<Planned> planned_;
  std::map<std::string, size_t> stacks_;  // output name -> index
  std::set<std::string> quantized_;       // output paths
};

}  // namespace

Result<std::vector<ConvertItem>> PlanConversion(const WeightSource& source, const ModelSpec& model,
                                                const ConvertOptions& options,
                                                std::vector<std::string>& warnings) {
  Planner planner(source, model, options, warnings);
  for (const TensorNeed& need : NeededTensors(model, &source)) {
    TQ_RETURN_IF_ERROR(planner.Add(need));
  }
  return planner.Finish();
}

}  // namespace tq
