#include "quantize/convert.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/threads.h"
#include "codec/codec.h"
#include "codec/hadamard.h"
#include "codec/turbo_quant_encode.h"
#include "model/spec.h"
#include "quantize/hessian_file.h"
#include "quantize/ldlq.h"
#include "quantize/output_config.h"
#include "tensor/half.h"
#include "weights/safetensors_writer.h"
#include "weights/turbo_quant_tensors.h"

namespace tq {
namespace {

// One tensor of the source and what becomes of it.
struct Item {
  const SourceTensor* source = nullptr;
  std::string path;  // without ".weight"
  bool quantize = false;
  TurboQuantSpec spec;        // when quantize
  DType dtype = DType::kF16;  // of the copy, when not
  std::vector<SafetensorsWriter::Tensor> outputs;
  int64_t output_bytes = 0;
};

// Rows per piece: enough work for the threads, little memory, frequent progress.
constexpr int64_t kPieceWeights = int64_t{1} << 22;

int64_t TensorBytes(const SafetensorsWriter::Tensor& tensor) {
  return NumElements(tensor.shape) * static_cast<int64_t>(DTypeBytes(tensor.dtype));
}

void PlanQuantized(const QuantizeSettings& settings, Rounding rounding, Item& item) {
  const int64_t rows = item.source->shape[0];
  const int64_t cols = item.source->shape[1];
  item.quantize = true;
  item.spec = {.codebook_entries = 1 << BitsForPath(settings, item.path),
               .group = GroupForPath(settings, item.path),
               .rotate = settings.rotate,
               .seed = TurboQuantLayerSeed(settings.rotation_seed, item.path),
               .search_scale = rounding == Rounding::kSearch};
  const int entries = item.spec.codebook_entries;
  item.outputs = {{item.path + ".weight", DType::kU32, {rows, TurboQuantWords(entries, cols)}},
                  {item.path + ".scales", DType::kF16, {rows, cols / item.spec.group}},
                  {item.path + ".codebook", DType::kF16, {entries}},
                  {item.path + ".signs", DType::kF16, {cols}}};
}

// Plain floats keep their type; block formats become f16, which holds their 8-bit-ish values better
// than bf16.
DType CopyType(const SourceTensor& tensor) {
  const bool plain = tensor.codec == CodecId::kF32 || tensor.codec == CodecId::kBf16;
  return tensor.is_float_like && !plain ? DType::kF16 : tensor.dtype;
}

Result<std::vector<Item>> PlanItems(const WeightSource& source, const ModelSpec& model,
                                    const ConvertOptions& options,
                                    std::vector<std::string>& warnings) {
  const QuantizeSettings& settings = options.settings;
  std::vector<Item> items;
  std::set<std::string> quantized_paths;
  for (const TensorNeed& need : NeededTensors(model, &source)) {
    const SourceTensor* tensor = source.Find(need.name);
    if (tensor == nullptr)
      return NotFound("tensor " + need.name + " is missing from " + source.path());
    if (tensor->shape != need.shape) {
      return Corrupt("tensor " + need.name + ": expected " + ShapeString(need.shape) +
                     " from config.json, found " + ShapeString(tensor->shape));
    }
    if (!tensor->is_float_like) {
      return Unsupported("tensor " + need.name + ": expected floats to convert, found " +
                         std::string(DTypeName(tensor->dtype)));
    }
    Item item;
    item.source = tensor;
    item.path = need.name.substr(0, need.name.rfind('.'));
    const bool linear = need.role == TensorRole::kLinear;
    const int group = GroupForPath(settings, item.path);
    if (linear && IsQuantizable(need.shape[0], need.shape[1], group)) {
      PlanQuantized(settings, options.rounding, item);
      quantized_paths.insert(item.path);
    } else {
      if (linear && need.shape[1] % group != 0) {
        warnings.push_back(
            fmt::format("{}: {} columns are no multiple of the group {}: kept in full precision",
                        item.path, need.shape[1], group));
      }
      // The published loader wants the bias of a quantized matrix in f16.
      const bool f16_bias = need.role == TensorRole::kBias && quantized_paths.contains(item.path);
      item.dtype = f16_bias ? DType::kF16 : CopyType(*tensor);
      item.outputs = {{need.name, item.dtype, need.shape}};
    }
    for (const auto& output : item.outputs) item.output_bytes += TensorBytes(output);
    items.push_back(std::move(item));
  }
  return items;
}

// A new shard starts before a tensor would overflow it. Tensors of one matrix stay together.
std::vector<std::vector<const Item*>> PlanShards(const std::vector<Item>& items,
                                                 int64_t max_bytes) {
  std::vector<std::vector<const Item*>> shards(1);
  int64_t used = 0;
  for (const Item& item : items) {
    if (!shards.back().empty() && used + item.output_bytes > max_bytes) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().push_back(&item);
    used += item.output_bytes;
  }
  return shards;
}

std::string ShardName(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

template <typename T>
std::span<const std::byte> AsBytes(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

std::vector<uint16_t> ToF16(std::span<const float> values) {
  std::vector<uint16_t> out;
  out.reserve(values.size());
  for (const float value : values) out.push_back(F32ToF16(value));
  return out;
}

class Converter {
 public:
  // calibration may be null.
  Converter(const ConvertOptions& options, const HessianFile* calibration)
      : options_(options), calibration_(calibration), pool_(options.num_threads) {}

  void SetTotal(int64_t weights) { total_ = weights; }

  Status WriteItem(const Item& item, SafetensorsWriter& writer) {
    return item.quantize ? WriteQuantized(item, writer) : WriteCopy(item, writer);
  }

 private:
  Status WriteQuantized(const Item& item, SafetensorsWriter& writer) {
    const StoredMatrix matrix = MatrixView(*item.source);
    const int64_t words_per_row = TurboQuantWords(item.spec.codebook_entries, matrix.cols);
    const int64_t groups = matrix.cols / item.spec.group;
    const std::vector<float> signs =
        item.spec.rotate ? TurboQuantSigns(item.spec.seed, matrix.cols)
                         : std::vector<float>(static_cast<size_t>(matrix.cols), 1.0f);
    scales_.resize(static_cast<size_t>(matrix.rows * groups));
    std::unique_ptr<const Ldlq> ldlq;
    if (calibration_ != nullptr) {
      TQ_ASSIGN_OR_RETURN(std::vector<float> hessian, calibration_->Read(item.path, matrix.cols));
      ldlq = std::make_unique<Ldlq>(item.spec, signs, std::move(hessian), LdlqOptions(), pool_);
    }
    const int64_t piece = PieceRows(matrix.cols);
    for (int64_t row = 0; row < matrix.rows; row += piece) {
      const int64_t n = std::min(piece, matrix.rows - row);
      words_.resize(static_cast<size_t>(n * words_per_row));
      TQ_RETURN_IF_ERROR(
          EncodeRows(item, matrix, {signs, ldlq.get()}, row, n, words_per_row, groups));
      TQ_RETURN_IF_ERROR(writer.Append(item.path + ".weight", AsBytes(words_)));
      TQ_RETURN_IF_ERROR(Advance(n * matrix.cols));
    }
    TQ_RETURN_IF_ERROR(writer.Append(item.path + ".scales", AsBytes(scales_)));
    TQ_RETURN_IF_ERROR(
        writer.Append(item.path + ".codebook",
                      AsBytes(ToF16(LloydMaxCodebook(item.spec.codebook_entries).stored))));
    return writer.Append(item.path + ".signs", AsBytes(ToF16(signs)));
  }

  struct Encoder {
    std::span<const float> signs;
    const Ldlq* ldlq;  // null: rows are rounded alone
  };

  static int64_t PieceRows(int64_t cols) {
    const int64_t tiles = kPieceWeights / cols / Ldlq::kTileRows;
    return std::max<int64_t>(1, tiles) * Ldlq::kTileRows;
  }

  Status EncodeRows(const Item& item, const StoredMatrix& matrix, const Encoder& encoder,
                    int64_t first, int64_t n, int64_t words_per_row, int64_t groups) {
    std::atomic<int64_t> bad_row{-1};
    threads_.resize(static_cast<size_t>(pool_.num_threads()));
    const int64_t step = encoder.ldlq != nullptr ? Ldlq::kTileRows : 1;
    pool_.ParallelFor(n, step, [&](int64_t begin, int64_t end, int thread) {
      ThreadBuffers& buffers = threads_[static_cast<size_t>(thread)];
      buffers.rows.resize(static_cast<size_t>(step * matrix.cols));
      for (int64_t i = begin; i < end; i += step) {
        const int64_t count = std::min(step, end - i);
        for (int64_t r = 0; r < count; ++r) {
          DecodeRow(matrix, first + i + r, 0, matrix.cols, buffers.rows.data() + r * matrix.cols);
        }
        uint32_t* words = words_.data() + i * words_per_row;
        uint16_t* scales = scales_.data() + (first + i) * groups;
        const bool good =
            encoder.ldlq != nullptr
                ? encoder.ldlq->EncodeTile(buffers.rows.data(), count, words, scales, buffers.tile)
                : EncodeTurboQuantRow(item.spec, buffers.rows, encoder.signs, words, scales,
                                      buffers.row);
        if (!good) bad_row = first + i;
      }
    });
    if (bad_row >= 0) {
      return Corrupt(fmt::format(
          "tensor {}, {} {}: expected finite weights below 65504, found NaN, infinity or larger",
          item.source->name, step == 1 ? "row" : "near row", bad_row.load()));
    }
    return Status::Ok();
  }

  Status WriteCopy(const Item& item, SafetensorsWriter& writer) {
    const SourceTensor& tensor = *item.source;
    const int64_t elements = NumElements(tensor.shape);
    TQ_RETURN_IF_ERROR(CheckFinite(tensor));
    if (tensor.dtype == item.dtype && GetCodec(tensor.codec).block_values == 1) {
      TQ_RETURN_IF_ERROR(writer.Append(tensor.name, tensor.bytes));
      return Advance(elements);
    }
    const StoredMatrix matrix = MatrixView(tensor);
    std::vector<float> row(static_cast<size_t>(matrix.cols));
    for (int64_t r = 0; r < matrix.rows; ++r) {
      DecodeRow(matrix, r, 0, matrix.cols, row.data());
      const std::vector<uint16_t> half = ToF16(row);
      TQ_RETURN_IF_ERROR(writer.Append(tensor.name, AsBytes(half)));
      TQ_RETURN_IF_ERROR(Advance(matrix.cols));
    }
    return Status::Ok();
  }

  Status Advance(int64_t weights) {
    done_ += weights;
    if (options_.progress) options_.progress(done_, total_);
    if (options_.cancel != nullptr && options_.cancel->load())
      return Cancelled("conversion stopped: nothing was written");
    return Status::Ok();
  }

  struct ThreadBuffers {
    std::vector<float> rows;
    TurboQuantScratch row;
    LdlqScratch tile;
  };

  const ConvertOptions& options_;
  const HessianFile* calibration_;
  ThreadPool pool_;
  int64_t done_ = 0;
  int64_t total_ = 0;
  std::vector<uint32_t> words_;
  std::vector<uint16_t> scales_;
  std::vector<ThreadBuffers> threads_;
};

Status CopyDocuments(const WeightSource& source, const std::string& folder) {
  for (const std::string& name : source.DocumentNames()) {
    if (name == "config.json" || name.ends_with(".safetensors.index.json")) continue;
    TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument(name));
    TQ_RETURN_IF_ERROR(WriteFile(folder + "/" + name, text));
  }
  return Status::Ok();
}

Status WriteShards(const std::vector<std::vector<const Item*>>& shards, const std::string& folder,
                   const WeightSource& source, Converter& converter, const ConvertReport& report) {
  std::vector<std::pair<std::string, std::string>> shard_of;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = ShardName(i, shards.size());
    std::vector<SafetensorsWriter::Tensor> tensors;
    for (const Item* item : shards[i]) {
      for (const auto& output : item->outputs) {
        tensors.push_back(output);
        shard_of.emplace_back(output.name, name);
      }
    }
    TQ_ASSIGN_OR_RETURN(
        const auto writer,
        SafetensorsWriter::Create(folder + "/" + name, std::move(tensors), {{"format", "mlx"}}));
    for (const Item* item : shards[i]) {
      TQ_RETURN_IF_ERROR(converter.WriteItem(*item, *writer));
      source.DropPages(*item->source);
    }
    TQ_RETURN_IF_ERROR(writer->Finish());
  }
  return WriteFile(folder + "/model.safetensors.index.json",
                   ShardIndex(std::move(shard_of), report.output_bytes, report.total_weights));
}

}  // namespace

Result<ConvertReport> Convert(const WeightSource& source, const std::string& output_folder,
                              const ConvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TQ_RETURN_IF_ERROR(options.settings.Validate());
  TQ_ASSIGN_OR_RETURN(const std::string config_text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(config_text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec model,
                      ParseModelSpec(config, source.facts()));
  if (config.contains("quantization") && config["quantization"].is_object()) {
    return InvalidArgument(source.path() +
                           " is a TurboQuant checkpoint already: convert from the original");
  }
  std::unique_ptr<HessianFile> calibration;
  if (!options.calibration.empty()) {
    TQ_ASSIGN_OR_RETURN(calibration, HessianFile::Open(options.calibration));
    TQ_RETURN_IF_ERROR(calibration->CheckFingerprint(source));
  }
  TQ_ASSIGN_OR_RETURN(const std::string out_config,
                      TurboQuantConfig(config_text, options.settings));

  ConvertReport report;
  TQ_ASSIGN_OR_RETURN(const std::vector<Item> items,
                      PlanItems(source, model, options, report.warnings));
  for (const Item& item : items) {
    const int64_t weights = NumElements(item.source->shape);
    report.total_weights += weights;
    report.source_bytes += static_cast<int64_t>(item.source->bytes.size());
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
  TQ_ASSIGN_OR_RETURN(const auto staged, StagedDirectory::Create(output_folder));
  Converter converter(options, calibration.get());
  converter.SetTotal(report.total_weights);
  TQ_RETURN_IF_ERROR(WriteShards(PlanShards(items, options.max_shard_bytes), staged->path(), source,
                                 converter, report));
  TQ_RETURN_IF_ERROR(WriteFile(staged->path() + "/config.json", out_config));
  TQ_RETURN_IF_ERROR(CopyDocuments(source, staged->path()));
  TQ_RETURN_IF_ERROR(staged->Commit());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tq
