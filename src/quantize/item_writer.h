// ItemWriter: the tensors of one planned item, from the source into a safetensors file. Memory: a
// few rows for each thread, the codes of a piece, the scales of one item.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads.h"
#include "codec/turbo_quant_encode.h"
#include "quantize/convert_plan.h"
#include "quantize/hessian_file.h"
#include "quantize/ldlq.h"
#include "quantize/rounded_store.h"
#include "tensor/half.h"

namespace tq {

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

class ItemWriter {
 public:
  // What rounds better than rows alone; each may be null.
  struct Help {
    const HessianFile* calibration;
    const RoundedStore* rounded;  // matrices that need no rounding any more
  };
  // total_weights: of all items, for the progress.
  ItemWriter(const WeightSource& source, const ConvertOptions& options, const Help& help,
             int64_t total_weights);

  struct RowLayout {
    int64_t words;      // per row
    int64_t groups;     // per row
    int64_t first_row;  // of the stack, where this matrix begins
  };

  // Items that an earlier run wrote.
  Status Skip(const std::vector<const ConvertItem*>& items);
  // Errors: as Convert.
  Status Write(const ConvertItem& item, SafetensorsWriter& writer);

 private:
  // A piece of rows: enough work for the threads, little memory, frequent progress.
  static constexpr int64_t kPieceWeights = int64_t{1} << 22;

  struct Encoder {
    std::span<const float> signs;
    const Ldlq* ldlq;                   // null: rows are rounded alone
    const RoundedStore::View* rounded;  // not null: they are there already
  };
  struct ThreadBuffers {
    std::vector<float> rows;
    TurboQuantScratch row;
    LdlqScratch tile;
    std::vector<float> residual;
    std::vector<float> decoded;
  };
  using VisitMatrix = std::function<Status(const std::string& path, const StoredMatrix& matrix)>;

  // The matrices of an item, one after the other, in the basis of the source.
  Status ForEachMatrix(const ConvertItem& item, const VisitMatrix& visit);
  Status ForEachHead(const ConvertItem& item, const VisitMatrix& visit);

  // write_turbo_quant.cc. The experts of a stack share signs and codebook.
  Status WriteTurboQuant(const ConvertItem& item, SafetensorsWriter& writer);
  // Sets ldlq_; matrices of a stack that share their input share it. Null without a calibration and
  // for an expert that no token was sent to.
  Status LoadFeedback(const ConvertItem& item, const std::string& path,
                      std::span<const float> signs);
  Status WriteWords(const ConvertItem& item, const std::string& path, const StoredMatrix& matrix,
                    const Encoder& encoder, const RowLayout& layout, SafetensorsWriter& writer);
  Status EncodeRows(const ConvertItem& item, const std::string& path, const StoredMatrix& matrix,
                    const Encoder& encoder, int64_t first, int64_t n, const RowLayout& layout);
  void EncodeResidual(const ConvertItem& item, std::span<const float> signs, const uint32_t* words,
                      int64_t row, ThreadBuffers& buffers, const float* values);

  // write_affine.cc
  Status WriteAffine(const ConvertItem& item, SafetensorsWriter& writer);
  Status WriteAffineCodes(const ConvertItem& item, const std::string& path,
                          const StoredMatrix& matrix, int64_t first_row, SafetensorsWriter& writer);

  // item_writer.cc
  Status WriteDecoded(const ConvertItem& item, SafetensorsWriter& writer);
  Status WriteCopy(const ConvertItem& item, SafetensorsWriter& writer);
  Status WriteRows(const ConvertItem& item, const SourceTensor& tensor, SafetensorsWriter& writer);
  Status AppendFloats(const std::string& name, DType dtype, std::span<const float> values,
                      SafetensorsWriter& writer);
  Status Advance(int64_t weights);
  ThreadBuffers& BuffersOf(int thread) { return threads_[static_cast<size_t>(thread)]; }

  const WeightSource& source_;
  const ConvertOptions& options_;
  const HessianFile* calibration_;
  const RoundedStore* rounded_;
  ThreadPool pool_;
  int64_t done_ = 0;
  const int64_t total_;
  std::vector<uint32_t> words_;       // of a piece
  std::vector<uint16_t> scales_;      // of an item
  std::vector<uint32_t> qjl_words_;   // of an item
  std::vector<uint16_t> qjl_norms_;   // of an item
  std::vector<float> qjl_signs_;      // of an item
  std::vector<uint8_t> codes_;        // affine, of a piece
  std::vector<float> affine_scales_;  // of an item
  std::vector<float> affine_biases_;  // of an item
  std::vector<ThreadBuffers> threads_;
  std::unique_ptr<const Ldlq> ldlq_;
  std::string_view ldlq_input_;  // of the calibration: what ldlq_ was made from
};

}  // namespace tq
