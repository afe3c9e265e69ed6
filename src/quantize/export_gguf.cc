// A checkpoint as one GGUF file.
#include <chrono>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/staged_file.h"
#include "model/model.h"
#include "quantize/export.h"
#include "quantize/export_stream.h"
#include "quantize/gguf_config.h"
#include "weights/gguf_arch.h"
#include "weights/gguf_tokenizer_keys.h"
#include "weights/gguf_writer.h"

namespace tq {
namespace {

// Ids of the tensor types (gguf_types.cc) and of general.file_type.
constexpr uint32_t kTypeF32 = 0;
constexpr uint32_t kTypeF16 = 1;
constexpr uint32_t kTypeQ8 = 8;
constexpr uint32_t kFileTypeF16 = 1;
constexpr uint32_t kFileTypeQ8 = 7;
constexpr uint32_t kQuantizationVersion = 2;
constexpr int64_t kQ8Block = 32;

uint32_t TypeId(ExportType type) {
  if (type == ExportType::kQ8_0) return kTypeQ8;
  return type == ExportType::kF16 ? kTypeF16 : kTypeF32;
}

ExportChange ChangeOf(GgufChange change) {
  if (change == GgufChange::kHeadRows) return ExportChange::kHeadRows;
  return change == GgufChange::kPlusOne ? ExportChange::kPlusOne : ExportChange::kNone;
}

class Planner {
 public:
  Planner(const WeightSource& source, const ModelSpec& model, const GgufArch& arch,
          GgufMatrices matrices)
      : model_(model), arch_(arch), matrices_(matrices) {
    for (TensorNeed& need : NeededTensors(model, &source)) needs_.emplace(need.name, need);
  }

  // The rope factors come first.
  Status Add(const std::string& rope_name, std::vector<float> rope_factors) {
    if (!rope_factors.empty()) {
      ExportItem item;
      item.name = rope_name;
      item.shape = {static_cast<int64_t>(rope_factors.size())};
      item.values = std::move(rope_factors);
      items_.push_back(std::move(item));
    }
    for (const GgufTensorRule& rule : arch_.model_rules) AddRule(rule, "", "");
    for (size_t i = 0; i < model_.blocks.size(); ++i) {
      const std::string number = std::to_string(i);
      for (const GgufTensorRule& rule : arch_.layer_rules) {
        AddRule(rule, "blk." + number + '.', "model.layers." + number + '.');
      }
    }
    if (needs_.empty()) return Status::Ok();
    return Unsupported("tensor " + needs_.begin()->first +
                       ": has no name in a GGUF file of this architecture");
  }

  std::vector<ExportItem> Take() { return std::move(items_); }

 private:
  // A tensor that the model does not need is one of an optional group.
  void AddRule(const GgufTensorRule& rule, const std::string& gguf, const std::string& name) {
    auto node = needs_.extract(name + std::string(rule.hugging_face));
    if (node.empty()) return;
    ExportItem item;
    item.need = std::move(node.mapped());
    item.name = gguf + std::string(rule.gguf);
    item.shape = item.need.shape;
    item.change = ChangeOf(rule.change);
    item.head_dim = std::get<AttentionSpec>(model_.blocks[0].mixer).head_dim;
    if (item.shape.size() == 2) {
      const bool blocks = matrices_ == GgufMatrices::kQ8_0 && item.cols() % kQ8Block == 0;
      item.type = blocks ? ExportType::kQ8_0 : ExportType::kF16;
    }
    items_.push_back(std::move(item));
  }

  const ModelSpec& model_;
  const GgufArch& arch_;
  GgufMatrices matrices_;
  std::map<std::string, TensorNeed> needs_;
  std::vector<ExportItem> items_;
};

// "models/Qwen3-8B/" -> "Qwen3-8B"
std::string NameOf(const std::string& path) {
  std::filesystem::path name(path);
  if (!name.has_filename()) name = name.parent_path();
  return name.stem().string();
}

// Reads the header back: what the keys say must be the model that the tensors belong to.
Status CheckHeader(const std::string& path, const ModelSpec& model) {
  TQ_ASSIGN_OR_RETURN(const auto written, OpenSource(path));
  TQ_ASSIGN_OR_RETURN(const std::string text, written->ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec found, ParseModelSpec(config, written->facts()));
  const std::string difference = ModelDifference(model, found);
  if (difference.empty()) return Status::Ok();
  return Unsupported(difference +
                     " of this model cannot be expressed in a GGUF file (--to hf can)");
}

}  // namespace

Result<ExportReport> ExportGguf(const WeightSource& source, const std::string& output_file,
                                const ExportOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  if (!output_file.ends_with(".gguf")) {
    return InvalidArgument(output_file + ": expected a file name that ends in .gguf");
  }
  TQ_ASSIGN_OR_RETURN(const std::string config_text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(config_text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec model, ParseModelSpec(config, source.facts()));
  Result<std::string> architecture = GgufArchitecture(model);
  if (!architecture.ok()) return architecture.status().WithContext(source.path());

  const bool q8 = options.matrices == GgufMatrices::kQ8_0;
  ExportReport report;
  report.type = q8 ? "Q8_0" : "F16";
  GgufMetadata metadata;
  metadata.Text("general.architecture", *architecture);
  metadata.Text("general.type", "model");
  metadata.Text("general.name", NameOf(source.path()));
  metadata.Int("general.file_type", q8 ? kFileTypeQ8 : kFileTypeF16);
  metadata.Int("general.quantization_version", kQuantizationVersion);
  auto rope_factors = AddGgufConfig(model, config, *architecture, metadata);
  if (!rope_factors.ok()) return rope_factors.status().WithContext(source.path());
  TQ_ASSIGN_OR_RETURN(const TokenizerDocuments documents, ReadTokenizerDocuments(source));
  TQ_RETURN_IF_ERROR(AddGgufTokenizer(
      documents, model.vocab_size, source.path() + ": tokenizer.json", metadata, report.warnings));
  const GgufArch arch = *FindGgufArch(*architecture);
  Planner planner(source, model, arch, options.matrices);
  TQ_RETURN_IF_ERROR(
      planner.Add("rope_freqs.weight", std::move(*rope_factors)).WithContext(source.path()));
  const std::vector<ExportItem> items = planner.Take();

  for (const SourceTensor& tensor : source.tensors()) {
    report.source_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  std::vector<GgufWriter::Tensor> tensors;
  for (const ExportItem& item : items) {
    tensors.push_back({item.name, item.shape, TypeId(item.type)});
    report.total_weights += item.weights();
    report.output_bytes += item.output_bytes();
  }
  report.tensors = static_cast<int64_t>(items.size());

  TQ_ASSIGN_OR_RETURN(const auto staged, StagedFile::Create(output_file));
  TQ_ASSIGN_OR_RETURN(const auto writer,
                      GgufWriter::Create(staged->path(), metadata, std::move(tensors)));
  ExportStream stream(source, ConfigRotates(config), options, report.total_weights);
  bool checked = false;
  for (const ExportItem& item : items) {
    // The rope factors belong to the description of the model: a reader needs their values.
    if (!checked && item.values.empty()) {
      TQ_RETURN_IF_ERROR(writer->Flush());
      TQ_RETURN_IF_ERROR(CheckHeader(staged->path(), model).WithContext(source.path()));
      checked = true;
    }
    TQ_RETURN_IF_ERROR(stream.Write(
        item, [&](std::span<const std::byte> bytes) { return writer->Append(item.name, bytes); }));
  }
  TQ_RETURN_IF_ERROR(writer->Finish());
  TQ_RETURN_IF_ERROR(staged->Commit());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tq
