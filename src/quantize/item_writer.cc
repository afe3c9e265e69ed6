#include "quantize/item_writer.h"

#include <cmath>

#include <fmt/format.h>

#include "codec/codec.h"
#include "quantize/work_folder.h"
#include "weights/matrix_tensors.h"

namespace tq {
namespace {

// Leaves the padding out.
void Shorten(SourceTensor& vector, int64_t values) {
  const size_t bytes = vector.bytes.size() / static_cast<size_t>(vector.shape[0]);
  vector.shape = {values};
  vector.bytes = vector.bytes.first(bytes * static_cast<size_t>(values));
}

}  // namespace

ItemWriter::ItemWriter(const WeightSource& source, const ConvertOptions& options, const Help& help,
                       int64_t total_weights)
    : source_(source),
      options_(options),
      calibration_(help.calibration),
      rounded_(help.rounded),
      pool_(options.num_threads),
      total_(total_weights),
      threads_(static_cast<size_t>(pool_.num_threads())) {}

Status ItemWriter::Write(const ConvertItem& item, SafetensorsWriter& writer) {
  if (item.quantize) return WriteTurboQuant(item, writer);
  if (item.affine) return WriteAffine(item, writer);
  return item.decode ? WriteDecoded(item, writer) : WriteCopy(item, writer);
}

Status ItemWriter::ForEachMatrix(const ConvertItem& item, const VisitMatrix& visit) {
  if (item.heads) return ForEachHead(item, visit);
  for (const std::string& path : item.sources) {
    TQ_ASSIGN_OR_RETURN(const MatrixTensors source,
                        ReadMatrix(source_, path, item.rows, item.cols, false));
    TQ_RETURN_IF_ERROR(visit(path, source.matrix));
    for (const SourceTensor* part : source.parts) source_.DropPages(*part);
  }
  return Status::Ok();
}

Status ItemWriter::ForEachHead(const ConvertItem& item, const VisitMatrix& visit) {
  const HeadCut& cut = *item.heads;
  const std::string& path = item.sources[0];
  TQ_ASSIGN_OR_RETURN(const MatrixTensors source,
                      ReadMatrix(source_, path, cut.heads * cut.stride, cut.rank, false));
  std::vector<float> values(static_cast<size_t>(cut.num_rows * cut.rank));
  std::vector<float> row(static_cast<size_t>(cut.rank));
  StoredMatrix matrix;
  matrix.format = {.codec = CodecId::kF32, .bits = 32};
  matrix.rows = item.rows;
  matrix.cols = item.cols;
  matrix.data = AsBytes(values).data();
  matrix.row_bytes = item.cols * static_cast<int64_t>(sizeof(float));
  for (int64_t head = 0; head < cut.heads; ++head) {
    for (int64_t r = 0; r < cut.num_rows; ++r) {
      DecodeRow(source.matrix, head * cut.stride + cut.first + r, 0, cut.rank, row.data());
      for (int64_t c = 0; c < cut.rank; ++c) {
        values[static_cast<size_t>(cut.transposed ? c * cut.num_rows + r : r * cut.rank + c)] =
            row[static_cast<size_t>(c)];
      }
    }
    TQ_RETURN_IF_ERROR(visit(path, matrix));
  }
  for (const SourceTensor* part : source.parts) source_.DropPages(*part);
  return Status::Ok();
}

Status ItemWriter::WriteDecoded(const ConvertItem& item, SafetensorsWriter& writer) {
  return ForEachMatrix(item, [&](const std::string&, const StoredMatrix& matrix) {
    TQ_RETURN_IF_ERROR(
        AppendFloats(item.outputs[0].name, item.dtype, MatrixFloats(matrix), writer));
    return Advance(item.rows * item.cols);
  });
}

// Tensors that keep their values: as they are, as another float type, or one added (folded norms).
Status ItemWriter::WriteCopy(const ConvertItem& item, SafetensorsWriter& writer) {
  const std::string& name = item.outputs[0].name;
  for (const std::string& source_name : item.sources) {
    const SourceTensor& stored = *source_.Find(source_name);
    std::vector<std::byte> storage;
    SourceTensor tensor = DenseTensor(stored, storage);
    if (tensor.shape.size() == 1 && tensor.shape[0] > item.cols) Shorten(tensor, item.cols);
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

Status ItemWriter::WriteRows(const ConvertItem& item, const SourceTensor& tensor,
                             SafetensorsWriter& writer) {
  const StoredMatrix matrix = MatrixView(tensor);
  std::vector<float> row(static_cast<size_t>(matrix.cols));
  for (int64_t r = 0; r < matrix.rows; ++r) {
    DecodeRow(matrix, r, 0, matrix.cols, row.data());
    if (item.fold_one) {
      for (float& x : row) x = 1.0f + x;
    }
    TQ_RETURN_IF_ERROR(AppendFloats(item.outputs[0].name, item.dtype, row, writer));
    TQ_RETURN_IF_ERROR(Advance(matrix.cols));
  }
  return Status::Ok();
}

Status ItemWriter::AppendFloats(const std::string& name, DType dtype, std::span<const float> values,
                                SafetensorsWriter& writer) {
  if (dtype == DType::kF32) return writer.Append(name, std::as_bytes(values));
  if (dtype == DType::kBf16) return writer.Append(name, AsBytes(ToBf16(values)));
  for (const float value : values) {
    if (std::fabs(value) < 65520.0f) continue;
    return Corrupt(fmt::format(
        "tensor {}: expected values below 65504 to keep as float16, found {}: use --dtype bfloat16",
        name, value));
  }
  return writer.Append(name, AsBytes(ToF16(values)));
}

Status ItemWriter::Advance(int64_t weights) {
  done_ += weights;
  if (options_.progress) options_.progress(done_, total_);
  if (options_.cancel == nullptr || !options_.cancel->load()) return Status::Ok();
  return ConversionStopped(options_.resume);
}

Status ItemWriter::Skip(const std::vector<const ConvertItem*>& items) {
  int64_t weights = 0;
  for (const ConvertItem* item : items) weights += item->weights();
  return Advance(weights);
}

}  // namespace tq
