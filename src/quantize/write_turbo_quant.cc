// TurboQuant matrices: words row by row, then scales, codebook, signs and maybe the residual.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "codec/codec.h"
#include "codec/hadamard.h"
#include "codec/qjl.h"
#include "quantize/item_writer.h"

namespace tq {
namespace {

// A multiple of the rows that error feedback takes at once.
int64_t PieceRows(int64_t piece_weights, int64_t cols) {
  const int64_t tiles = piece_weights / cols / Ldlq::kTileRows;
  return std::max<int64_t>(1, tiles) * Ldlq::kTileRows;
}

// count rows from `row` on, as they were rounded.
bool CopyRounded(const RoundedStore::View& rounded, int64_t row, int64_t count,
                 const ItemWriter::RowLayout& layout, uint32_t* words, uint16_t* scales) {
  const auto copy = [&](std::span<const std::byte> from, int64_t bytes, void* to) {
    std::memcpy(to, from.data() + row * bytes, static_cast<size_t>(count * bytes));
  };
  copy(rounded.words, layout.words * static_cast<int64_t>(sizeof(uint32_t)), words);
  copy(rounded.scales, layout.groups * static_cast<int64_t>(sizeof(uint16_t)), scales);
  return true;
}

}  // namespace

Status ItemWriter::WriteTurboQuant(const ConvertItem& item, SafetensorsWriter& writer) {
  const int entries = item.spec.codebook_entries;
  const int64_t groups = item.cols / item.spec.group;
  const std::vector<float> signs = item.spec.rotate
                                       ? TurboQuantSigns(item.spec.seed, item.cols)
                                       : std::vector<float>(static_cast<size_t>(item.cols), 1.0f);
  scales_.resize(static_cast<size_t>(item.num_matrices() * item.rows * groups));
  if (item.qjl) {
    qjl_signs_ = QjlSigns(item.cols);
    qjl_norms_.resize(static_cast<size_t>(item.rows));
    qjl_words_.resize(static_cast<size_t>(item.rows * QjlWords(item.cols)));
  }
  ldlq_.reset();
  ldlq_input_ = {};
  RowLayout layout = {TurboQuantWords(entries, item.cols), groups, 0};
  const VisitMatrix write = [&](const std::string& path, const StoredMatrix& matrix) {
    const RoundedStore::View* rounded = rounded_ == nullptr ? nullptr : rounded_->Find(path);
    if (rounded == nullptr) TQ_RETURN_IF_ERROR(LoadFeedback(item, path, signs));
    const Encoder encoder{signs, ldlq_.get(), rounded};
    TQ_RETURN_IF_ERROR(WriteWords(item, path, matrix, encoder, layout, writer));
    layout.first_row += item.rows;
    return Status::Ok();
  };
  TQ_RETURN_IF_ERROR(ForEachMatrix(item, write));
  TQ_RETURN_IF_ERROR(writer.Append(item.path + ".scales", AsBytes(scales_)));
  TQ_RETURN_IF_ERROR(
      writer.Append(item.path + ".codebook", AsBytes(ToF16(LloydMaxCodebook(entries).stored))));
  TQ_RETURN_IF_ERROR(writer.Append(item.path + ".signs", AsBytes(ToF16(signs))));
  if (!item.qjl) return Status::Ok();
  TQ_RETURN_IF_ERROR(writer.Append(item.path + ".qjl_packed", AsBytes(qjl_words_)));
  TQ_RETURN_IF_ERROR(writer.Append(item.path + ".qjl_norms", AsBytes(qjl_norms_)));
  return writer.Append(item.path + ".qjl_signs", AsBytes(ToF16(qjl_signs_)));
}

Status ItemWriter::LoadFeedback(const ConvertItem& item, const std::string& path,
                                std::span<const float> signs) {
  if (calibration_ == nullptr || !item.measured) return Status::Ok();
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

Status ItemWriter::WriteWords(const ConvertItem& item, const std::string& path,
                              const StoredMatrix& matrix, const Encoder& encoder,
                              const RowLayout& layout, SafetensorsWriter& writer) {
  const int64_t piece = PieceRows(kPieceWeights, item.cols);
  for (int64_t row = 0; row < item.rows; row += piece) {
    const int64_t n = std::min(piece, item.rows - row);
    words_.resize(static_cast<size_t>(n * layout.words));
    TQ_RETURN_IF_ERROR(EncodeRows(item, path, matrix, encoder, row, n, layout));
    TQ_RETURN_IF_ERROR(writer.Append(item.path + ".weight", AsBytes(words_)));
    TQ_RETURN_IF_ERROR(Advance(n * item.cols));
  }
  return Status::Ok();
}

Status ItemWriter::EncodeRows(const ConvertItem& item, const std::string& path,
                              const StoredMatrix& matrix, const Encoder& encoder, int64_t first,
                              int64_t n, const RowLayout& layout) {
  std::atomic<int64_t> bad_row{-1};
  const int64_t step = encoder.ldlq != nullptr ? Ldlq::kTileRows : 1;
  pool_.ParallelFor(n, step, [&](int64_t begin, int64_t end, int thread) {
    ThreadBuffers& buffers = BuffersOf(thread);
    buffers.rows.resize(static_cast<size_t>(step * matrix.cols));
    for (int64_t i = begin; i < end; i += step) {
      const int64_t count = std::min(step, end - i);
      for (int64_t r = 0; r < count; ++r) {
        DecodeRow(matrix, first + i + r, 0, matrix.cols, buffers.rows.data() + r * matrix.cols);
      }
      uint32_t* words = words_.data() + i * layout.words;
      uint16_t* scales = scales_.data() + (layout.first_row + first + i) * layout.groups;
      const bool good =
          encoder.rounded != nullptr
              ? CopyRounded(*encoder.rounded, first + i, count, layout, words, scales)
          : encoder.ldlq != nullptr
              ? encoder.ldlq->EncodeTile(buffers.rows.data(), count, words, scales, buffers.tile)
              : EncodeTurboQuantRow(item.spec, buffers.rows, encoder.signs, words, scales,
                                    buffers.row);
      if (!good) {
        bad_row = first + i;
      } else if (item.qjl) {
        for (int64_t r = 0; r < count; ++r) {
          EncodeResidual(item, encoder.signs, words + r * layout.words, first + i + r, buffers,
                         buffers.rows.data() + r * matrix.cols);
        }
      }
    }
  });
  if (bad_row >= 0) {
    return Corrupt(fmt::format(
        "tensor {}, {} {}: expected finite weights below 65504, found NaN, infinity or larger",
        path + ".weight", step == 1 ? "row" : "near row", bad_row.load()));
  }
  return Status::Ok();
}

// values: the row in the basis of the source; its codes are in words and scales_ already.
void ItemWriter::EncodeResidual(const ConvertItem& item, std::span<const float> signs,
                                const uint32_t* words, int64_t row, ThreadBuffers& buffers,
                                const float* values) {
  const auto cols = static_cast<size_t>(item.cols);
  buffers.residual.assign(values, values + cols);
  if (item.spec.rotate) {
    for (size_t i = 0; i < cols; ++i) buffers.residual[i] *= signs[i];
    HadamardForward(buffers.residual);
  }
  StoredMatrix codes;
  codes.format = {.codec = CodecId::kTurboQuant, .group = item.spec.group};
  codes.rows = 1;
  codes.cols = item.cols;
  codes.data = std::as_bytes(std::span<const uint32_t>(words, 1)).data();
  codes.scales = AsBytes(scales_).data() + row * (item.cols / item.spec.group) * 2;
  codes.codebook = LloydMaxCodebook(item.spec.codebook_entries).stored;
  buffers.decoded.resize(cols);
  DecodeRow(codes, 0, 0, item.cols, buffers.decoded.data());
  // The published writer's residual is that of weights rounded to f16.
  for (size_t i = 0; i < cols; ++i) {
    buffers.residual[i] -= F16ToF32(F32ToF16(buffers.decoded[i]));
  }
  const float norm =
      EncodeQjlRow(buffers.residual, qjl_signs_, qjl_words_.data() + row * QjlWords(item.cols));
  qjl_norms_[static_cast<size_t>(row)] = F32ToF16(norm);
}

}  // namespace tq
