// A checkpoint as plain floats in Hugging Face's layout.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "model/model.h"
#include "quantize/documents.h"
#include "quantize/export.h"
#include "quantize/export_stream.h"
#include "quantize/output_config.h"
#include "quantize/output_names.h"
#include "weights/ignorable.h"
#include "weights/safetensors_writer.h"

namespace tq {
namespace {

// Of llama3's rope rule, in every released model.
constexpr double kLowFactor = 1.0;
constexpr double kHighFactor = 4.0;

DType DTypeOf(ExportType type) {
  switch (type) {
    case ExportType::kF16:
      return DType::kF16;
    case ExportType::kBf16:
      return DType::kBf16;
    case ExportType::kI64:
      return DType::kI64;
    default:
      return DType::kF32;
  }
}

// A matrix of its own, or one of several that a text model wraps.
const Json& TextConfig(const Json& config) {
  const auto text = config.find("text_config");
  return text != config.end() && text->is_object() ? *text : config;
}

class Planner {
 public:
  Planner(const WeightSource& source, const Json& config, const ModelSpec& model,
          const ModelSpec& plain_model, ExportType type)
      : source_(source),
        wrapped_(config.contains("text_config") && config["text_config"].is_object()),
        model_(model),
        plain_model_(plain_model),
        type_(type) {}

  std::vector<ExportItem> Run() {
    std::vector<ExportItem> items;
    std::map<std::string, size_t> latent;  // prefix -> index of its item
    for (const TensorNeed& need : NeededTensors(model_, &source_)) {
      if (!AddLatent(need, latent, items)) items.push_back(Plan(need));
    }
    for (ExportItem& item : items) {
      if (item.latent.heads == 0) continue;
      const LatentHeads& heads = item.latent;
      item.need.name = heads.prefix + "kv_b_proj.weight";
      item.name = OutputNameOf(item.need.name);
      item.shape = {heads.heads * (heads.nope + heads.values), heads.rank};
      item.type = type_;
    }
    return items;
  }

 private:
  // Gathers the heads of a latent attention.
  static bool AddLatent(const TensorNeed& need, std::map<std::string, size_t>& latent,
                        std::vector<ExportItem>& items) {
    for (const std::string_view part : {"embed_q.", "unembed_out."}) {
      const size_t at = need.name.find(part);
      if (at == std::string::npos) continue;
      const std::string prefix = need.name.substr(0, at);
      const auto [it, inserted] = latent.emplace(prefix, items.size());
      if (inserted) items.emplace_back();
      LatentHeads& heads = items[it->second].latent;
      heads.prefix = prefix;
      if (part == "embed_q.") {
        ++heads.heads;
        heads.rank = need.shape[0];
        heads.nope = need.shape[1];
      } else {
        heads.values = need.shape[0];
      }
      return true;
    }
    return false;
  }

  ExportItem Plan(const TensorNeed& need) const {
    ExportItem item;
    item.need = need;
    item.name = OutputNameOf(need.name);
    item.shape = need.shape;
    if (IsConvolution(need.name) && need.shape.size() == 2) {
      item.shape = {need.shape[0], 1, need.shape[1]};
    }
    item.type = TypeOf(need);
    if (source_.facts().norms_include_one && FoldsNorm(plain_model_, need)) {
      item.change = ExportChange::kMinusOne;
    }
    return item;
  }

  // Small tensors that a checkpoint of 16-bit floats keeps in f32 stay so: decays, selection
  // biases.
  ExportType TypeOf(const TensorNeed& need) const {
    const SourceTensor* tensor = source_.Find(need.name);
    if (tensor == nullptr) return type_;
    if (tensor->dtype == DType::kI64) return ExportType::kI64;
    const bool kept = source_.container() == "safetensors" && need.role == TensorRole::kSmall &&
                      tensor->is_float_like && tensor->codec == CodecId::kF32;
    return kept && !IsF32Source() ? ExportType::kF32 : type_;
  }

  // The checkpoint's norms are f32: nothing in it is of 16 bits on purpose.
  bool IsF32Source() const {
    const SourceTensor* norm = source_.Find("model.norm.weight");
    return norm != nullptr && norm->is_float_like && norm->codec == CodecId::kF32;
  }

  std::string OutputNameOf(const std::string& name) const {
    constexpr std::string_view kModel = "model.";
    if (model_.model_type == "nemotron_h") return OutputName(name, model_.model_type);
    if (model_.model_type == "kimi_k3") return "language_model." + name;
    if (!wrapped_ || !name.starts_with(kModel)) return name;
    return "model.language_model." + name.substr(kModel.size());
  }

  const WeightSource& source_;
  bool wrapped_;
  const ModelSpec& model_;
  const ModelSpec& plain_model_;
  ExportType type_;
};

// What config.json says, else what the final norm is stored in, where that is a 16-bit type.
DType SourceType(const WeightSource& source, const Json& config) {
  for (const Json* object : {&TextConfig(config), &config}) {
    for (const char* key : {"dtype", "torch_dtype"}) {
      const auto value = object->find(key);
      if (value == object->end() || !value->is_string()) continue;
      if (*value == "float16") return DType::kF16;
      if (*value == "bfloat16") return DType::kBf16;
    }
  }
  const SourceTensor* norm = source.Find("model.norm.weight");
  const bool f16 = norm != nullptr && norm->is_float_like && norm->codec == CodecId::kF16;
  return f16 ? DType::kF16 : DType::kBf16;
}

// Whether llama3's rule with this length of the original context gives the divisors.
bool IsLlama3(const OrderedJson& divisors, double theta, double factor, double original) {
  constexpr double kTurn = 6.283185307179586;
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(divisors.size());
    const double wavelength = kTurn * std::pow(theta, share);
    double expected = 1.0;
    if (wavelength > original / kLowFactor) {
      expected = factor;
    } else if (wavelength >= original / kHighFactor) {
      const double mix = (original / wavelength - kLowFactor) / (kHighFactor - kLowFactor);
      expected = 1.0 / ((1.0 - mix) / factor + mix);
    }
    if (std::fabs(divisors[i].get<double>() - expected) > 1e-5 * expected) return false;
  }
  return true;
}

// The rope factors of a GGUF file as the rule that made them, which other programs know too. Null
// when no such rule is found.
OrderedJson Llama3Rope(const OrderedJson& divisors, double theta) {
  double factor = 1.0;
  for (const OrderedJson& value : divisors) factor = std::max(factor, value.get<double>());
  for (int64_t original = 32; original <= (1 << 20); original *= 2) {
    if (!IsLlama3(divisors, theta, factor, static_cast<double>(original))) continue;
    return {{"rope_type", "llama3"},
            {"factor", factor},
            {"low_freq_factor", kLowFactor},
            {"high_freq_factor", kHighFactor},
            {"original_max_position_embeddings", original}};
  }
  return nullptr;
}

void ReplaceRopeFactors(OrderedJson& config, std::vector<std::string>& warnings) {
  const auto rope = config.find("rope_scaling");
  if (rope == config.end() || !rope->is_object() || !rope->contains("factors")) return;
  const OrderedJson named = Llama3Rope((*rope)["factors"], config.value("rope_theta", 10000.0));
  if (named.is_null()) {
    warnings.push_back(
        "config.json: the rope factors of the file fit no rule of Hugging Face's: kept as "
        "rope_type tq_factors, which only this program reads");
  } else {
    *rope = named;
  }
}

Result<std::string> PlainConfig(const std::string& text, DType dtype,
                                std::vector<std::string>& warnings) {
  TQ_ASSIGN_OR_RETURN(OrderedJson config, ParseOrderedJson(text, "config.json"));
  const std::string name = dtype == DType::kF16 ? "float16" : "bfloat16";
  bool named = false;
  const auto clean = [&](OrderedJson& object) {
    for (const char* key : {"quantization", "quantization_config", "compression_config"}) {
      object.erase(key);
    }
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (!object.contains(key)) continue;
      object[key] = name;
      named = true;
    }
  };
  clean(config);
  if (config.contains("text_config") && config["text_config"].is_object()) {
    clean(config["text_config"]);
  }
  if (!named) config["torch_dtype"] = name;
  ReplaceRopeFactors(config, warnings);
  return config.dump(2) + "\n";
}

Status WriteShard(const std::string& path, std::span<const ExportItem> items,
                  ExportStream& stream) {
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const ExportItem& item : items) {
    tensors.push_back({item.name, DTypeOf(item.type), item.shape});
  }
  TQ_ASSIGN_OR_RETURN(const auto writer,
                      SafetensorsWriter::Create(path, std::move(tensors), {{"format", "pt"}}));
  for (const ExportItem& item : items) {
    TQ_RETURN_IF_ERROR(stream.Write(
        item, [&](std::span<const std::byte> bytes) { return writer->Append(item.name, bytes); }));
  }
  return writer->Finish();
}

// Shards as ranges of items.
std::vector<std::span<const ExportItem>> Shards(const std::vector<ExportItem>& items,
                                                int64_t max_bytes) {
  std::vector<std::span<const ExportItem>> shards;
  size_t first = 0;
  int64_t used = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t bytes = items[i].output_bytes();
    if (i > first && used + bytes > max_bytes) {
      shards.push_back(std::span(items).subspan(first, i - first));
      first = i;
      used = 0;
    }
    used += bytes;
  }
  shards.push_back(std::span(items).subspan(first));
  return shards;
}

void WarnOfTowers(const WeightSource& source, std::vector<std::string>& warnings) {
  int64_t count = 0;
  for (const SourceTensor& tensor : source.tensors()) {
    count += IsIgnorableTensor(source, tensor.name) ? 1 : 0;
  }
  if (count == 0) return;
  warnings.push_back(std::to_string(count) +
                     " tensors are no part of the text model (images, drafts): left out");
}

}  // namespace

Result<ExportReport> ExportHuggingFace(const WeightSource& source, const std::string& output_folder,
                                       const ExportOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TQ_ASSIGN_OR_RETURN(const std::string config_text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(config_text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec model, ParseModelSpec(config, source.facts()));
  CheckpointFacts plain_facts = source.facts();
  plain_facts.norms_include_one = false;
  TQ_ASSIGN_OR_RETURN(const ModelSpec plain_model, ParseModelSpec(config, plain_facts));
  const DType dtype = options.dtype.value_or(SourceType(source, config));
  if (dtype != DType::kBf16 && dtype != DType::kF16) {
    return InvalidArgument("dtype: expected bfloat16 or float16");
  }
  ExportReport report;
  report.type = DTypeName(dtype);
  TQ_ASSIGN_OR_RETURN(const std::string out_config,
                      PlainConfig(config_text, dtype, report.warnings));
  const ExportType type = dtype == DType::kF16 ? ExportType::kF16 : ExportType::kBf16;
  const std::vector<ExportItem> items = Planner(source, config, model, plain_model, type).Run();
  WarnOfTowers(source, report.warnings);
  for (const SourceTensor& tensor : source.tensors()) {
    report.source_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  for (const ExportItem& item : items) {
    report.total_weights += item.weights();
    report.output_bytes += item.output_bytes();
  }
  report.tensors = static_cast<int64_t>(items.size());

  TQ_ASSIGN_OR_RETURN(const auto staged, StagedDirectory::Create(output_folder));
  ExportStream stream(source, ConfigRotates(config), options, report.total_weights);
  const auto shards = Shards(items, options.max_shard_bytes);
  std::vector<std::pair<std::string, std::string>> shard_of;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = ShardName(i, shards.size());
    for (const ExportItem& item : shards[i]) shard_of.emplace_back(item.name, name);
    TQ_RETURN_IF_ERROR(WriteShard(staged->path() + "/" + name, shards[i], stream));
  }
  if (shards.size() > 1) {
    TQ_RETURN_IF_ERROR(
        WriteFile(staged->path() + "/model.safetensors.index.json",
                  ShardIndex(std::move(shard_of), report.output_bytes, report.total_weights)));
  }
  TQ_RETURN_IF_ERROR(WriteFile(staged->path() + "/config.json", out_config));
  TQ_RETURN_IF_ERROR(CopyDocuments(source, staged->path()));
  TQ_RETURN_IF_ERROR(staged->Commit());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tq
