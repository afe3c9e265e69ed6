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
#include "quantize/bit_allocation.h"
#include "quantize/convert_plan.h"
#include "quantize/hessian_file.h"
#include "quantize/ldlq.h"
#include "quantize/output_config.h"
#include "tensor/half.h"
#include "weights/matrix_tensors.h"
#include "weights/safetensors_writer.h"

namespace tq {
namespace {

// Rows per piece: enough work for the threads, little memory, frequent progress.
constexpr int64_t kPieceWeights = int64_t{1} << 22;

// A new shard starts before a tensor would overflow it. Tensors of one matrix stay together.
std::vector<std::vector<const ConvertItem*>> PlanShards(const std::vector<ConvertItem>& items,
                                                        int64_t max_bytes) {
  std::vector<std::vector<const ConvertItem*>> shards(1);
  int64_t used = 0;
  for (const ConvertItem& item : items) {
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

template <uint16_t (*kRound)(float)>
std::vector<uint16_t> Rounded(std::span<const float> values) {
  std::vector<uint16_t> out;
  out.reserve(values.size());
  for (const float value : values) out.push_back(kRound(value));
  return out;
}
constexpr auto ToF16 = Rounded<F32ToF16>;
constexpr auto ToBf16 = Rounded<F32ToBf16>;

class Converter {
 public:
  // calibration may be null.
  Converter(const WeightSource& source, const ConvertOptions& options,
            const HessianFile* calibration)
      : source_(source), options_(options), calibration_(calibration), pool_(options.num_threads) {}

  void SetTotal(int64_t weights) { total_ = weights; }

  Status WriteItem(const ConvertItem& item, SafetensorsWriter& writer) {
    if (item.quantize) return WriteQuantized(item, writer);
    return item.decode ? WriteDecoded(item, writer) : WriteCopy(item, writer);
  }

 private:
  // One matrix after the other: the experts of a stack share signs and codebook.
  Status WriteQuantized(const ConvertItem& item, SafetensorsWriter& writer) {
    const int64_t words_per_row = TurboQuantWords(item.spec.codebook_entries, item.cols);
    const int64_t groups = item.cols / item.spec.group;
    const auto count = static_cast<int64_t>(item.sources.size());
    const std::vector<float> signs = item.spec.rotate
                                         ? TurboQuantSigns(item.spec.seed, item.cols)
                                         : std::vector<float>(static_cast<size_t>(item.cols), 1.0f);
    scales_.resize(static_cast<size_t>(count * item.rows * groups));
    ldlq_input_ = {};
    for (int64_t i = 0; i < count; ++i) {
      const std::string& path = item.sources[static_cast<size_t>(i)];
      TQ_ASSIGN_OR_RETURN(const MatrixTensors source,
                          ReadMatrix(source_, path, item.rows, item.cols, false));
      TQ_RETURN_IF_ERROR(LoadFeedback(item, path, signs));
      TQ_RETURN_IF_ERROR(WriteWords(item, path, source.matrix, {signs, ldlq_.get()},
                                    {words_per_row, groups, i * item.rows}, writer));
      for (const SourceTensor* part : source.parts) source_.DropPages(*part);
    }
    TQ_RETURN_IF_ERROR(writer.Append(item.path + ".scales", AsBytes(scales_)));
    TQ_RETURN_IF_ERROR(
        writer.Append(item.path + ".codebook",
                      AsBytes(ToF16(LloydMaxCodebook(item.spec.codebook_entries).stored))));
    return writer.Append(item.path + ".signs", AsBytes(ToF16(signs)));
  }

  // Sets ldlq_; matrices of a stack that share their input share it. Null without a calibration and
  // for an expert that no token was sent to.
  Status LoadFeedback(const ConvertItem& item, const std::string& path,
                      std::span<const float> signs) {
    if (calibration_ == nullptr) return Status::Ok();
    const std::string_view input = calibration_->InputName(path);
    if (!input.empty() && input == ldlq_input_) return Status::Ok();
    ldlq_input_ = input;
    ldlq_.reset();
    TQ_ASSIGN_OR_RETURN(const int64_t rows, calibration_->Rows(path));
    TQ_ASSIGN_OR_RETURN(std::vector<float> hessian, calibration_->Read(path, item.cols));
    if (rows == 0) return Status::Ok();
    const LdlqOptions options{.damping = LdlqDamping(item.cols, rows)};
    ldlq_ = std::make_unique<Ldlq>(item.spec, signs, std::move(hessian), options, pool_);
    return Status::Ok();
  }

  struct Encoder {
    std::span<const float> signs;
    const Ldlq* ldlq;  // null: rows are rounded alone
  };

  struct RowLayout {
    int64_t words;         // per row
    int64_t groups;        // per row
    int64_t first_scales;  // row of scales_ where this matrix begins
  };

  Status WriteWords(const ConvertItem& item, const std::string& path, const StoredMatrix& matrix,
                    const Encoder& encoder, const RowLayout& layout, SafetensorsWriter& writer) {
    const int64_t piece = PieceRows(item.cols);
    for (int64_t row = 0; row < item.rows; row += piece) {
      const int64_t n = std::min(piece, item.rows - row);
      words_.resize(static_cast<size_t>(n * layout.words));
      TQ_RETURN_IF_ERROR(EncodeRows(item, path, matrix, encoder, row, n, layout));
      TQ_RETURN_IF_ERROR(writer.Append(item.path + ".weight", AsBytes(words_)));
      TQ_RETURN_IF_ERROR(Advance(n * item.cols));
    }
    return Status::Ok();
  }

  static int64_t PieceRows(int64_t cols) {
    const int64_t tiles = kPieceWeights / cols / Ldlq::kTileRows;
    return std::max<int64_t>(1, tiles) * Ldlq::kTileRows;
  }

  Status EncodeRows(const ConvertItem& item, const std::string& path, const StoredMatrix& matrix,
                    const Encoder& encoder, int64_t first, int64_t n, const RowLayout& layout) {
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
        uint32_t* words = words_.data() + i * layout.words;
        uint16_t* scales = scales_.data() + (layout.first_scales + first + i) * layout.groups;
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
          path + ".weight", step == 1 ? "row" : "near row", bad_row.load()));
    }
    return Status::Ok();
  }

  Status WriteDecoded(const ConvertItem& item, SafetensorsWriter& writer) {
    for (const std::string& path : item.sources) {
      TQ_ASSIGN_OR_RETURN(const MatrixTensors source,
                          ReadMatrix(source_, path, item.rows, item.cols, false));
      TQ_RETURN_IF_ERROR(writer.Append(item.outputs[0].name, AsBytes(MatrixFloats(source.matrix))));
      TQ_RETURN_IF_ERROR(Advance(item.rows * item.cols));
    }
    return Status::Ok();
  }

  // Tensors that keep their values: as they are, as f16 (block formats), or one added (folded
  // norms).
  Status WriteCopy(const ConvertItem& item, SafetensorsWriter& writer) {
    const std::string& name = item.outputs[0].name;
    for (const std::string& source_name : item.sources) {
      const SourceTensor& stored = *source_.Find(source_name);
      std::vector<std::byte> storage;
      const SourceTensor tensor = DenseTensor(stored, storage);
      if (tensor.is_float_like) TQ_RETURN_IF_ERROR(CheckFinite(tensor));
      if (!item.fold_one && tensor.dtype == item.dtype &&
          (!tensor.is_float_like || GetCodec(tensor.codec).block_values == 1)) {
        TQ_RETURN_IF_ERROR(writer.Append(name, tensor.bytes));
        TQ_RETURN_IF_ERROR(Advance(NumElements(tensor.shape)));
      } else {
        TQ_RETURN_IF_ERROR(WriteRows(item, tensor, writer));
      }
      source_.DropPages(stored);
    }
    return Status::Ok();
  }

  Status WriteRows(const ConvertItem& item, const SourceTensor& tensor, SafetensorsWriter& writer) {
    const StoredMatrix matrix = MatrixView(tensor);
    const std::string& name = item.outputs[0].name;
    std::vector<float> row(static_cast<size_t>(matrix.cols));
    for (int64_t r = 0; r < matrix.rows; ++r) {
      DecodeRow(matrix, r, 0, matrix.cols, row.data());
      if (item.fold_one) {
        for (float& x : row) x = 1.0f + x;
      }
      if (item.dtype == DType::kF32) {
        TQ_RETURN_IF_ERROR(writer.Append(name, AsBytes(row)));
      } else {
        const bool bf16 = item.dtype == DType::kBf16;
        TQ_RETURN_IF_ERROR(writer.Append(name, AsBytes(bf16 ? ToBf16(row) : ToF16(row))));
      }
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

  const WeightSource& source_;
  const ConvertOptions& options_;
  const HessianFile* calibration_;
  ThreadPool pool_;
  int64_t done_ = 0;
  int64_t total_ = 0;
  std::vector<uint32_t> words_;
  std::vector<uint16_t> scales_;
  std::vector<ThreadBuffers> threads_;
  std::unique_ptr<const Ldlq> ldlq_;
  std::string_view ldlq_input_;  // of the calibration: what ldlq_ was made from
};

Status CopyDocuments(const WeightSource& source, const std::string& folder) {
  for (const std::string& name : source.DocumentNames()) {
    if (name == "config.json" || name.ends_with(".safetensors.index.json")) continue;
    TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument(name));
    TQ_RETURN_IF_ERROR(WriteFile(folder + "/" + name, text));
  }
  return Status::Ok();
}

bool IsTurboQuantConfig(const Json& config) {
  const auto block = config.find("quantization");
  if (block == config.end() || !block->is_object()) return false;
  const auto mode = block->find("mode");
  return mode != block->end() && *mode == "turboquant";
}

Status WriteShards(const std::vector<std::vector<const ConvertItem*>>& shards,
                   const std::string& folder, Converter& converter, const ConvertReport& report) {
  std::vector<std::pair<std::string, std::string>> shard_of;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = ShardName(i, shards.size());
    std::vector<SafetensorsWriter::Tensor> tensors;
    for (const ConvertItem* item : shards[i]) {
      for (const auto& output : item->outputs) {
        tensors.push_back(output);
        shard_of.emplace_back(output.name, name);
      }
    }
    TQ_ASSIGN_OR_RETURN(
        const auto writer,
        SafetensorsWriter::Create(folder + "/" + name, std::move(tensors), {{"format", "mlx"}}));
    for (const ConvertItem* item : shards[i]) {
      TQ_RETURN_IF_ERROR(converter.WriteItem(*item, *writer));
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
                      TurboQuantConfig(config_text, options.settings));

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
  TQ_ASSIGN_OR_RETURN(const auto staged, StagedDirectory::Create(output_folder));
  Converter converter(source, options, calibration.get());
  converter.SetTotal(report.total_weights);
  TQ_RETURN_IF_ERROR(
      WriteShards(PlanShards(items, options.max_shard_bytes), staged->path(), converter, report));
  TQ_RETURN_IF_ERROR(WriteFile(staged->path() + "/config.json", out_config));
  TQ_RETURN_IF_ERROR(CopyDocuments(source, staged->path()));
  TQ_RETURN_IF_ERROR(staged->Commit());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tq
