#include "quantize/convert.h"

#include <chrono>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "model/spec.h"
#include "quantize/bit_allocation.h"
#include "quantize/conversion_fingerprint.h"
#include "quantize/convert_plan.h"
#include "quantize/documents.h"
#include "quantize/hessian_file.h"
#include "quantize/item_writer.h"
#include "quantize/model_card.h"
#include "quantize/output_config.h"
#include "quantize/sequential_rounding.h"
#include "quantize/work_folder.h"
#include "weights/safetensors_writer.h"

namespace tq {
namespace {

struct Shard {
  std::string name;
  std::vector<const ConvertItem*> items;
};

// A new shard starts before a tensor would overflow it. Tensors of one matrix stay together. Items
// with a file of their own come last.
std::vector<Shard> PlanShards(const std::vector<ConvertItem>& items, int64_t max_bytes) {
  std::vector<Shard> shards(1);
  std::vector<Shard> others;
  int64_t used = 0;
  for (const ConvertItem& item : items) {
    if (!item.file.empty()) {
      if (others.empty() || others.back().name != item.file) others.push_back({item.file, {}});
      others.back().items.push_back(&item);
      continue;
    }
    if (!shards.back().items.empty() && used + item.output_bytes > max_bytes) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().items.push_back(&item);
    used += item.output_bytes;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].name = ShardName(i, shards.size());
  }
  shards.insert(shards.end(), others.begin(), others.end());
  return shards;
}

// All documents, and the model card with a word on the conversion.
Status WriteDocuments(const WeightSource& source, const QuantizeSettings& settings,
                      const std::string& folder) {
  TQ_RETURN_IF_ERROR(CopyDocuments(source, folder));
  const Result<std::string> source_card = source.ReadDocument("README.md");
  if (!source_card.ok() && source_card.status().code() != StatusCode::kNotFound) {
    return source_card.status();
  }
  return WriteFile(folder + "/README.md", ModelCard(source_card.ok() ? *source_card : "",
                                                    SourceName(source.path()), settings));
}

bool IsTurboQuantConfig(const Json& config) {
  const auto block = config.find("quantization");
  if (block == config.end() || !block->is_object()) return false;
  const auto mode = block->find("mode");
  return mode != block->end() && *mode == "turboquant";
}

Status WriteShards(const std::vector<Shard>& shards, WorkFolder& folder, ItemWriter& item_writer,
                   const ConvertReport& report) {
  std::vector<std::pair<std::string, std::string>> shard_of;
  for (const Shard& shard : shards) {
    std::vector<SafetensorsWriter::Tensor> tensors;
    for (const ConvertItem* item : shard.items) {
      for (const auto& output : item->outputs) {
        tensors.push_back(output);
        shard_of.emplace_back(output.name, shard.name);
      }
    }
    if (folder.IsFinished(shard.name)) {
      TQ_RETURN_IF_ERROR(item_writer.Skip(shard.items));
      continue;
    }
    TQ_ASSIGN_OR_RETURN(const auto writer,
                        SafetensorsWriter::Create(folder.path() + "/" + shard.name,
                                                  std::move(tensors), {{"format", "mlx"}}));
    for (const ConvertItem* item : shard.items) {
      TQ_RETURN_IF_ERROR(item_writer.Write(*item, *writer));
    }
    TQ_RETURN_IF_ERROR(writer->Finish());
    TQ_RETURN_IF_ERROR(folder.SetFinished(shard.name));
  }
  return WriteFile(folder.path() + "/model.safetensors.index.json",
                   ShardIndex(std::move(shard_of), report.output_bytes, report.total_weights));
}

// The progress counts the weights twice: they are rounded, then written.
Result<std::unique_ptr<SequentialResult>> RoundFirst(const WeightSource& source,
                                                     const std::vector<ConvertItem>& items,
                                                     const HessianFile& calibration,
                                                     WorkFolder& folder,
                                                     const ConvertOptions& options,
                                                     const ConvertReport& report) {
  SequentialOptions sequential;
  sequential.num_threads = options.num_threads;
  sequential.resume = options.resume;
  sequential.cancel = options.cancel;
  int64_t done = 0;
  sequential.progress = [&](int64_t weights) {
    done += weights;
    if (options.progress) options.progress(done, report.quantized_weights + report.total_weights);
  };
  return RoundSequentially(source, items, calibration, *options.sequential, folder, sequential);
}

// plan: not null: gets what would be written, and nothing is.
Result<ConvertReport> PlanAndWrite(const WeightSource& source, const std::string& output_folder,
                                   const ConvertOptions& options, std::vector<ConvertItem>* plan) {
  const auto start = std::chrono::steady_clock::now();
  TQ_RETURN_IF_ERROR(options.settings.Validate());
  TQ_ASSIGN_OR_RETURN(const std::string config_text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(config_text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec model, ParseModelSpec(config, source.facts()));
  if (IsTurboQuantConfig(config)) {
    return InvalidArgument(source.path() +
                           " is a TurboQuant checkpoint already: convert from the original");
  }
  std::unique_ptr<HessianFile> calibration;
  if (!options.calibration.empty()) {
    TQ_ASSIGN_OR_RETURN(calibration, HessianFile::Open(options.calibration));
    TQ_RETURN_IF_ERROR(calibration->CheckFingerprint(source));
  }
  TQ_ASSIGN_OR_RETURN(const std::string out_config,
                      TurboQuantConfig(config_text, options.settings, options.dtype));

  ConvertReport report;
  for (const SourceTensor& tensor : source.tensors()) {
    report.source_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  TQ_ASSIGN_OR_RETURN(std::vector<ConvertItem> items,
                      PlanConversion(source, model, options, report.warnings));
  std::erase_if(items, [&](const ConvertItem& item) {
    return !options.only_kind.empty() &&
           (!item.quantize || KindOfPath(item.path) != options.only_kind);
  });
  for (const ConvertItem& item : items) {
    const int64_t weights = item.weights();
    report.total_weights += weights;
    report.output_bytes += item.output_bytes;
    if (!item.quantize) continue;
    ++report.quantized_matrices;
    report.quantized_weights += weights;
    report.quantized_bytes += item.output_bytes;
  }
  if (report.quantized_matrices == 0) {
    return InvalidArgument(source.path() + ": no matrix can be quantized in groups of " +
                           std::to_string(options.settings.group_size));
  }
  if (plan != nullptr) {
    *plan = items;
    return report;
  }
  WorkFolder::Options work = {.resume = options.resume, .fingerprint = ""};
  if (work.resume) {
    work.fingerprint = ConversionFingerprint(source, items, out_config, calibration.get(), options);
  }
  TQ_ASSIGN_OR_RETURN(const auto staged, WorkFolder::Create(output_folder, work));
  std::unique_ptr<SequentialResult> rounded;
  if (options.sequential != nullptr && calibration != nullptr) {
    TQ_ASSIGN_OR_RETURN(rounded, RoundFirst(source, items, *calibration, *staged, options, report));
  }
  ConvertOptions writing = options;
  if (rounded != nullptr && options.progress) {
    writing.progress = [&](int64_t done, int64_t total) {
      options.progress(report.quantized_weights + done, report.quantized_weights + total);
    };
  }
  ItemWriter writer(source, writing, {calibration.get(), rounded ? &rounded->store : nullptr},
                    report.total_weights);
  TQ_RETURN_IF_ERROR(
      WriteShards(PlanShards(items, options.max_shard_bytes), *staged, writer, report));
  TQ_RETURN_IF_ERROR(WriteFile(staged->path() + "/config.json", out_config));
  TQ_RETURN_IF_ERROR(WriteDocuments(source, options.settings, staged->path()));
  if (rounded != nullptr) {
    std::error_code ignored;
    for (const std::string& name : rounded->files) {
      std::filesystem::remove(staged->path() + "/" + name, ignored);
    }
  }
  TQ_RETURN_IF_ERROR(staged->Commit());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

double BitsPerWeight(int64_t bytes, int64_t weights) {
  return weights == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

Result<ConvertReport> Convert(const WeightSource& source, const std::string& output_folder,
                              const ConvertOptions& options) {
  return PlanAndWrite(source, output_folder, options, nullptr);
}

int64_t CountShards(const std::vector<ConvertItem>& items, int64_t max_bytes) {
  return static_cast<int64_t>(PlanShards(items, max_bytes).size());
}

Result<ConvertReport> PlanConvert(const WeightSource& source, const ConvertOptions& options,
                                  std::vector<ConvertItem>& items) {
  return PlanAndWrite(source, "", options, &items);
}

}  // namespace tq
