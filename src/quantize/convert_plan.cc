#include "quantize/convert_plan.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "codec/qjl.h"
#include "codec/turbo_quant.h"
#include "quantize/output_names.h"
#include "quantize/plan_rules.h"
#include "weights/matrix_tensors.h"

namespace tq {
namespace {

int64_t TensorBytes(const SafetensorsWriter::Tensor& tensor) {
  return NumElements(tensor.shape) * static_cast<int64_t>(DTypeBytes(tensor.dtype));
}

Shape Stacked(int64_t count, bool is_stack, Shape shape) {
  if (is_stack) shape.insert(shape.begin(), count);
  return shape;
}

class Planner {
 public:
  Planner(const WeightSource& source, const ModelSpec& model, const ConvertOptions& options,
          std::vector<std::string>& warnings)
      : source_(source),
        model_(model),
        options_(options),
        settings_(options.settings),
        warnings_(warnings) {}

  Status Add(const TensorNeed& need) {
    if (const std::optional<LatentHeads> heads = LatentHeadsOf(model_, need)) {
      const std::string parent =
          OutputName(need.name.substr(0, need.name.rfind("kv_b_proj.")), model_.model_type);
      AddHeads(need, parent + "embed_q", heads->embed_q);
      AddHeads(need, parent + "unembed_out", heads->unembed_out);
      return Status::Ok();
    }
    const ExpertPath expert = ParseExpertPath(need.name, model_.model_type);
    if (!expert.is_expert) {
      return AddTensor(need, OutputName(need.name, model_.model_type), Group::kNone);
    }
    const std::string name = expert.stack + "." + expert.part;
    const auto found = stacks_.find(name);
    if (found == stacks_.end()) {
      stacks_.emplace(name, planned_.size());
      return AddTensor(need, name, expert.is_head ? Group::kHeads : Group::kExperts);
    }
    ConvertItem& item = planned_[found->second].item;
    const bool matrices = item.quantize || item.affine || item.decode;
    item.sources.push_back(matrices ? PathOf(need.name) : need.name);
    return Status::Ok();
  }

  Result<std::vector<ConvertItem>> Finish() {
    TQ_RETURN_IF_ERROR(CheckExpertLayers(settings_, expert_layers_, warnings_));
    std::vector<ConvertItem> items;
    for (Planned& planned : planned_) {
      SetOutputs(planned);
      items.push_back(std::move(planned.item));
    }
    if (options_.keep_mtp) TQ_RETURN_IF_ERROR(AddDraftHead(source_, items, warnings_));
    for (ConvertItem& item : items) {
      for (const auto& output : item.outputs) item.output_bytes += TensorBytes(output);
    }
    return items;
  }

 private:
  // Which matrices make one stack.
  enum class Group : uint8_t { kNone, kExperts, kHeads };

  // An item whose sources may still grow.
  struct Planned {
    ConvertItem item;
    std::string name;  // of the output tensor, when it is a copy
    Shape shape;       // of one source
    bool is_stack;
    bool is_convolution;
  };

  static std::string PathOf(const std::string& name) { return name.substr(0, name.rfind('.')); }

  // deepseek_v2 keeps its kv_b_proj whole, and that is a linear like any other.
  static bool IsLinear(const TensorNeed& need) {
    return need.shape.size() == 2 &&
           (need.role == TensorRole::kLinear || need.name.ends_with(".kv_b_proj.weight"));
  }

  Status AddTensor(const TensorNeed& need, const std::string& output, Group group) {
    ConvertItem item;
    item.path = PathOf(output);
    const bool matrix = need.shape.size() == 2;
    item.rows = matrix ? need.shape[0] : 1;
    item.cols = need.shape.empty() ? 1 : need.shape.back();
    const bool experts = group == Group::kExperts && IsLinear(need);
    if (experts) expert_layers_.insert(LayerOfPath(item.path));
    const int width = GroupForPath(settings_, item.path);
    if (IsLinear(need) && IsQuantizable(item.rows, item.cols, width)) {
      PlanTurboQuant(need, width, experts, item);
    } else {
      if (IsLinear(need) && item.cols % width != 0) {
        TQ_RETURN_IF_ERROR(WarnOfGroup(item, width, experts));
      }
      if (MayBeAffine(need, item, group) && TakesExtras(item, !IsLinear(need))) {
        item.affine = settings_.affine_extras;
        item.sources = {PathOf(need.name)};
        item.dtype = KeptType(source_.Find(need.name), need.name, options_);
      } else {
        TQ_RETURN_IF_ERROR(PlanCopy(need, item));
      }
    }
    Shape shape = UnpaddedShape(model_, need);
    if (shape.size() == 1) item.cols = shape[0];
    planned_.push_back({std::move(item), output, std::move(shape), group != Group::kNone,
                        IsConvolution(need.name)});
    return Status::Ok();
  }

  void PlanTurboQuant(const TensorNeed& need, int width, bool experts, ConvertItem& item) {
    item.quantize = true;
    item.measured = need.role == TensorRole::kLinear;
    item.qjl = settings_.use_qjl && !experts;
    item.sources = {PathOf(need.name)};
    item.spec = {
        .codebook_entries = CodebookEntriesForPath(settings_, item.path, experts),
        .group = width,
        .rotate = settings_.rotate,
        .seed = TurboQuantLayerSeed(settings_.rotation_seed, item.path),
        .search_scale = options_.rounding == Rounding::kSearch || !options_.calibration.empty()};
    quantized_.insert(item.path);
  }

  // A tier was asked for by name: it may not be left out silently.
  Status WarnOfGroup(const ConvertItem& item, int width, bool experts) {
    const std::string found =
        fmt::format("{}: {} columns are no multiple of the group {}", item.path, item.cols, width);
    if (experts && settings_.expert_layer_tiers.contains(LayerOfPath(item.path))) {
      return InvalidArgument(found + ", so its tier cannot be written: choose another group size");
    }
    if (!settings_.affine_extras || item.cols % settings_.affine_extras->group != 0) {
      warnings_.push_back(found + ": kept in full precision");
    }
    return Status::Ok();
  }

  // Embeddings, and what the published converter has as a linear that did not become TurboQuant.
  static bool MayBeAffine(const TensorNeed& need, const ConvertItem& item, Group group) {
    if (need.shape.size() != 2) return false;
    if (need.role == TensorRole::kEmbedding || group == Group::kHeads) return true;
    return IsLinear(need) && item.rows >= 32 && item.cols >= 32;
  }

  bool TakesExtras(const ConvertItem& item, bool warn) {
    if (!settings_.affine_extras) return false;
    if (item.cols % settings_.affine_extras->group == 0) return true;
    if (!warn) return false;
    warnings_.push_back(
        fmt::format("{}: {} columns are no multiple of the extras group {}: kept in full precision",
                    item.path, item.cols, settings_.affine_extras->group));
    return false;
  }

  void AddHeads(const TensorNeed& need, const std::string& path, const HeadCut& cut) {
    ConvertItem item;
    item.path = path;
    item.rows = cut.transposed ? cut.rank : cut.num_rows;
    item.cols = cut.transposed ? cut.num_rows : cut.rank;
    item.sources = {PathOf(need.name)};
    item.heads = cut;
    item.dtype = KeptType(source_.Find(need.name), need.name, options_);
    item.decode = !TakesExtras(item, true);
    if (!item.decode) item.affine = settings_.affine_extras;
    const Shape shape = {item.rows, item.cols};
    planned_.push_back({std::move(item), path + ".weight", shape, true, false});
  }

  Status PlanCopy(const TensorNeed& need, ConvertItem& item) {
    const SourceTensor* tensor = source_.Find(need.name);
    const bool quantized_source =
        tensor == nullptr || (!tensor->is_float_like && tensor->dtype != DType::kI64);
    if (quantized_source && need.shape.size() == 2 && need.name.ends_with(".weight")) {
      item.decode = true;
      item.dtype = KeptType(tensor, need.name, options_);
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
    item.dtype = f16_bias ? DType::kF16 : KeptType(tensor, need.name, options_);
    item.fold_one = FoldsNorm(model_, need);
    return Status::Ok();
  }

  static void SetOutputs(Planned& planned) {
    ConvertItem& item = planned.item;
    const auto stacked = [&](Shape shape) {
      return Stacked(item.num_matrices(), planned.is_stack, std::move(shape));
    };
    if (item.quantize) {
      const int entries = item.spec.codebook_entries;
      item.outputs = {
          {item.path + ".weight", DType::kU32,
           stacked({item.rows, TurboQuantWords(entries, item.cols)})},
          {item.path + ".scales", DType::kF16, stacked({item.rows, item.cols / item.spec.group})},
          {item.path + ".codebook", DType::kF16, {entries}},
          {item.path + ".signs", DType::kF16, {item.cols}}};
      if (!item.qjl) return;
      const int64_t words = QjlWords(item.cols);
      item.outputs.push_back({item.path + ".qjl_packed", DType::kU32, {item.rows, words}});
      item.outputs.push_back({item.path + ".qjl_norms", DType::kF16, {item.rows}});
      item.outputs.push_back({item.path + ".qjl_signs", DType::kF16, {item.cols}});
      return;
    }
    if (item.affine) {
      const Shape words = {item.rows, AffineRowBytes(item.affine->bits, item.cols) / 4};
      const Shape scales = {item.rows, item.cols / item.affine->group};
      item.outputs = {{item.path + ".weight", DType::kU32, stacked(words)},
                      {item.path + ".scales", item.dtype, stacked(scales)},
                      {item.path + ".biases", item.dtype, stacked(scales)}};
      return;
    }
    Shape shape = planned.shape;
    if (planned.is_convolution) shape.push_back(1);
    item.outputs = {{planned.name, item.dtype, stacked(std::move(shape))}};
  }

  const WeightSource& source_;
  const ModelSpec& model_;
  const ConvertOptions& options_;
  const QuantizeSettings& settings_;
  std::vector<std::string>& warnings_;
  std::vector<Planned> planned_;
  std::map<std::string, size_t> stacks_;  // output name -> index
  std::set<std::string> quantized_;       // output paths
  std::set<int> expert_layers_;
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
