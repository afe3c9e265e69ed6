// Affine matrices: codes row by row, then the scales, then the biases.
#include <algorithm>

#include <fmt/format.h>

#include "codec/codec.h"
#include "quantize/item_writer.h"

namespace tq {

Status ItemWriter::WriteAffine(const ConvertItem& item, SafetensorsWriter& writer) {
  const auto values =
      static_cast<size_t>(item.num_matrices() * item.rows * (item.cols / item.affine->group));
  affine_scales_.resize(values);
  affine_biases_.resize(values);
  int64_t first_row = 0;
  const VisitMatrix write = [&](const std::string& path, const StoredMatrix& matrix) {
    TQ_RETURN_IF_ERROR(WriteAffineCodes(item, path, matrix, first_row, writer));
    first_row += item.rows;
    return Status::Ok();
  };
  TQ_RETURN_IF_ERROR(ForEachMatrix(item, write));
  TQ_RETURN_IF_ERROR(AppendFloats(item.path + ".scales", item.dtype, affine_scales_, writer));
  return AppendFloats(item.path + ".biases", item.dtype, affine_biases_, writer);
}

Status ItemWriter::WriteAffineCodes(const ConvertItem& item, const std::string& path,
                                    const StoredMatrix& matrix, int64_t first_row,
                                    SafetensorsWriter& writer) {
  const int64_t row_bytes = AffineRowBytes(item.affine->bits, item.cols);
  const int64_t groups = item.cols / item.affine->group;
  const int64_t piece = std::max<int64_t>(1, kPieceWeights / item.cols);
  std::atomic<int64_t> bad_row{-1};
  for (int64_t first = 0; first < item.rows; first += piece) {
    const int64_t n = std::min(piece, item.rows - first);
    codes_.resize(static_cast<size_t>(n * row_bytes));
    pool_.ParallelFor(n, 1, [&](int64_t begin, int64_t end, int thread) {
      std::vector<float>& row = BuffersOf(thread).rows;
      row.resize(static_cast<size_t>(item.cols));
      for (int64_t i = begin; i < end; ++i) {
        DecodeRow(matrix, first + i, 0, item.cols, row.data());
        const int64_t at = (first_row + first + i) * groups;
        if (!EncodeAffineRow(*item.affine, row, codes_.data() + i * row_bytes,
                             affine_scales_.data() + at, affine_biases_.data() + at)) {
          bad_row = first + i;
        }
      }
    });
    if (bad_row >= 0) {
      return Corrupt(
          fmt::format("tensor {}, row {}: expected finite weights, found NaN or infinity",
                      path + ".weight", bad_row.load()));
    }
    TQ_RETURN_IF_ERROR(writer.Append(item.path + ".weight", AsBytes(codes_)));
    TQ_RETURN_IF_ERROR(Advance(n * item.cols));
  }
  return Status::Ok();
}

}  // namespace tq
