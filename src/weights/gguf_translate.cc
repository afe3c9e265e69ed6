#include "weights/gguf_translate.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "codec/codec.h"
#include "weights/quote.h"

namespace tq {
namespace {

// Trailing dims of one may be dropped in a file: compare without them.
Shape WithoutLeadingOnes(const Shape& shape) {
  const auto first = std::find_if(shape.begin(), shape.end(), [](int64_t dim) { return dim != 1; });
  return Shape(first, shape.end());
}

// Requires: a type with a codec.
SourceTensor Describe(const GgufTensorInfo& info, std::string name, Shape shape) {
  SourceTensor out;
  out.name = std::move(name);
  out.shape = std::move(shape);
  out.codec = *info.type->codec;
  out.is_float_like = true;
  out.bytes = info.bytes;
  if (out.codec == CodecId::kF32) out.dtype = DType::kF32;
  if (out.codec == CodecId::kF16) out.dtype = DType::kF16;
  if (out.codec == CodecId::kBf16) out.dtype = DType::kBf16;
  return out;
}

Status RequireCodec(const GgufTensorInfo& info, const std::string& where) {
  if (info.type->codec) return Status::Ok();
  return Unsupported(where + ": tensor " + Quoted(info.name) + ": values of type " +
                     std::string(info.type->name) + " are not supported as weights");
}

class Translator {
 public:
  Translator(GgufTensorMap stored, const GgufArch& arch, GgufModel& model, const std::string& where)
      : stored_(std::move(stored)), arch_(arch), model_(model), where_(where) {}

  Result<GgufTensors> Run() {
    TQ_RETURN_IF_ERROR(SplitFusedAttention());
    FindGroups();
    for (const GgufTensorRule& rule : arch_.model_rules) TQ_RETURN_IF_ERROR(Apply(rule, "", ""));
    for (int64_t i = 0; i < model_.num_layers; ++i) {
      const std::string gguf = "blk." + std::to_string(i) + '.';
      const std::string hugging_face = "model.layers." + std::to_string(i) + '.';
      for (const GgufTensorRule& rule : arch_.layer_rules) {
        TQ_RETURN_IF_ERROR(Apply(rule, gguf, hugging_face));
      }
    }
    if (!stored_.empty()) {
      return Unsupported(where_ + ": tensor " + Quoted(stored_.begin()->first) +
                         " is unknown for this architecture");
    }
    std::sort(out_.tensors.begin(), out_.tensors.end(),
              [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
    return std::move(out_);
  }

 private:
  Status SplitFusedAttention();
  Status SplitRows(const std::string& prefix, const std::string& suffix);
  void FindGroups();
  Status Apply(const GgufTensorRule& rule, const std::string& gguf,
               const std::string& hugging_face);
  Status Change(const GgufTensorInfo& info, GgufChange change, SourceTensor& tensor);
  int64_t Size(GgufDim dim) const;

  GgufTensorMap stored_;
  const GgufArch& arch_;
  GgufModel& model_;
  const std::string& where_;
  std::set<std::string_view> groups_;
  GgufTensors out_;
};

int64_t Translator::Size(GgufDim dim) const {
  switch (dim) {
    case GgufDim::kHidden:
      return model_.hidden;
    case GgufDim::kVocab:
      return model_.vocab;
    case GgufDim::kFfn:
      return model_.ffn;
    case GgufDim::kQuery:
      return model_.heads * model_.head_dim;
    case GgufDim::kKeyValue:
      return model_.kv_heads * model_.head_dim;
    case GgufDim::kHead:
      return model_.head_dim;
    case GgufDim::kNone:
      break;
  }
  return 1;
}

// Some writers concatenate the rows of q, k and v: "attn_qkv" becomes the three again.
Status Translator::SplitFusedAttention() {
  for (int64_t i = 0; i < model_.num_layers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + '.';
    for (const char* suffix : {".weight", ".bias"}) {
      if (stored_.contains(prefix + "attn_qkv" + suffix)) {
        TQ_RETURN_IF_ERROR(SplitRows(prefix, suffix));
      }
    }
  }
  return Status::Ok();
}

Status Translator::SplitRows(const std::string& prefix, const std::string& suffix) {
  const GgufTensorInfo fused = std::move(stored_.extract(prefix + "attn_qkv" + suffix).mapped());
  const int64_t rows = fused.shape.empty() ? 1 : fused.shape[0];
  const int64_t query = Size(GgufDim::kQuery);
  const int64_t key_value = Size(GgufDim::kKeyValue);
  // The rows of a vector are its values, which must not share a block.
  const bool divisible = fused.shape.size() == 2 || fused.type->block_values == 1;
  if (!divisible || rows != query + 2 * key_value) {
    return Corrupt(where_ + ": tensor " + Quoted(fused.name) + ": expected " +
                   std::to_string(query + 2 * key_value) + " rows, found shape " +
                   ShapeString(fused.shape));
  }
  const size_t row_bytes = fused.bytes.size() / static_cast<size_t>(rows);
  size_t row = 0;
  for (const auto& [name, count] : {std::pair("attn_q", query), std::pair("attn_k", key_value),
                                    std::pair("attn_v", key_value)}) {
    GgufTensorInfo part = fused;
    part.name = prefix + name + suffix;
    part.shape[0] = count;
    part.bytes = fused.bytes.subspan(row * row_bytes, static_cast<size_t>(count) * row_bytes);
    row += static_cast<size_t>(count);
    if (!stored_.emplace(part.name, part).second) {
      return Corrupt(where_ + ": tensor " + Quoted(part.name) + " appears beside " +
                     Quoted(fused.name));
    }
  }
  return Status::Ok();
}

// A group is there when its first layer has any tensor of it.
void Translator::FindGroups() {
  const auto find = [this](const GgufTensorRules& rules, const std::string& prefix) {
    for (const GgufTensorRule& rule : rules) {
      if (rule.group.empty()) continue;
      bool& flag =
          *model_.config.emplace(std::string(rule.group), false).first->get_ptr<Json::boolean_t*>();
      if (stored_.contains(prefix + std::string(rule.gguf))) {
        flag = true;
        groups_.insert(rule.group);
      }
    }
  };
  find(arch_.model_rules, "");
  find(arch_.layer_rules, "blk.0.");
  model_.config.erase("lm_head");
  model_.config["tie_word_embeddings"] = !groups_.contains("lm_head");
}

Status Translator::Apply(const GgufTensorRule& rule, const std::string& gguf,
                         const std::string& hugging_face) {
  if (!rule.group.empty() && !groups_.contains(rule.group)) return Status::Ok();
  const std::string name = gguf + std::string(rule.gguf);
  auto node = stored_.extract(name);
  if (node.empty()) return NotFound(where_ + ": tensor " + Quoted(name) + " is missing");
  const GgufTensorInfo& info = node.mapped();

  Shape shape = {Size(rule.rows)};
  if (rule.cols != GgufDim::kNone) shape.push_back(Size(rule.cols));
  if (WithoutLeadingOnes(info.shape) != WithoutLeadingOnes(shape)) {
    return Corrupt(where_ + ": tensor " + Quoted(name) + ": expected shape " + ShapeString(shape) +
                   ", found " + ShapeString(info.shape));
  }
  TQ_RETURN_IF_ERROR(RequireCodec(info, where_));
  SourceTensor tensor =
      Describe(info, hugging_face + std::string(rule.hugging_face), std::move(shape));
  if (rule.change != GgufChange::kNone) TQ_RETURN_IF_ERROR(Change(info, rule.change, tensor));
  out_.tensors.push_back(std::move(tensor));
  return Status::Ok();
}

Status Translator::Change(const GgufTensorInfo& info, GgufChange change, SourceTensor& tensor) {
  GgufChangedTensor changed;
  changed.stored = info;
  changed.stored.shape = tensor.shape;
  changed.change = change;
  changed.head_dim = model_.head_dim;
  size_t size = info.bytes.size();
  if (change == GgufChange::kPlusOne) {
    tensor.dtype = DType::kF32;
    tensor.codec = CodecId::kF32;
    size = static_cast<size_t>(NumElements(tensor.shape)) * sizeof(float);
  } else if (tensor.shape.size() < 2 && info.type->block_values != 1) {
    return Unsupported(where_ + ": tensor " + Quoted(info.name) + ": a vector of " +
                       std::string(info.type->name) + " blocks cannot be re-ordered");
  }
  changed.values.reset(new (std::nothrow) std::byte[size]);
  if (changed.values == nullptr) {
    return OutOfMemory(where_ + ": no memory for " + std::to_string(size) + " bytes of tensor " +
                       Quoted(info.name));
  }
  tensor.bytes = {changed.values.get(), size};
  out_.changed.push_back(std::move(changed));
  return Status::Ok();
}

}  // namespace

void GgufChangedTensor::Fill() const {
  if (change == GgufChange::kPlusOne) {
    const StoredMatrix matrix = MatrixView(Describe(stored, stored.name, stored.shape));
    std::vector<float> row(static_cast<size_t>(matrix.cols));
    DecodeRow(matrix, 0, 0, matrix.cols, row.data());
    for (float& value : row) value -= 1.0f;
    std::memcpy(values.get(), row.data(), row.size() * sizeof(float));
    return;
  }
  const int64_t rows = stored.shape[0];
  const size_t row_bytes = stored.bytes.size() / static_cast<size_t>(rows);
  const int64_t half = head_dim / 2;
  for (int64_t row = 0; row < rows; ++row) {  // in Hugging Face's order
    const int64_t in_head = row % head_dim;
    const int64_t source = row - in_head + in_head % half * 2 + in_head / half;
    std::memcpy(values.get() + static_cast<size_t>(row) * row_bytes,
                stored.bytes.data() + static_cast<size_t>(source) * row_bytes, row_bytes);
  }
}

Result<GgufTensors> TranslateGgufTensors(GgufTensorMap stored, const GgufArch& arch,
                                         GgufModel& model, const std::string& where) {
  return Translator(std::move(stored), arch, model, where).Run();
}

Result<std::vector<float>> ReadGgufFloats(const GgufTensorInfo& info, const std::string& where) {
  TQ_RETURN_IF_ERROR(RequireCodec(info, where));
  return ReadFloats(Describe(info, info.name, info.shape));
}

}  // namespace tq
