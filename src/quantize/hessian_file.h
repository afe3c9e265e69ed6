// The calibration file: for every input that matrices of a model share, the sum of x x^T over the
// calibration tokens. A safetensors file that any tool can read: per input one f32 [cols, cols]
// tensor named after its first matrix ("model.layers.0.self_attn.q_proj") and, with ".rows" added,
// an i64 [1] (the tokens that reached it: an expert sees few); and "samples", the i32 ids that were
// read, [samples, tokens].
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"
#include "weights/source.h"

namespace tq {

// 16 hex digits that tell checkpoints apart: names, shapes and a sample of the bytes of all
// tensors.
std::string CheckpointFingerprint(const WeightSource& source);

class HessianFile {
 public:
  // Errors: kNotFound, kIo, kCorrupt (no calibration file, or a damaged one).
  static Result<std::unique_ptr<HessianFile>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& fingerprint() const { return fingerprint_; }
  int64_t num_tokens() const;
  // The ids of every sample.
  std::vector<std::vector<int32_t>> Samples() const;

  // kInvalidArgument when the file was made for another checkpoint.
  Status CheckFingerprint(const WeightSource& source) const;
  // The sum for the input of a matrix (path without ".weight") with that many columns, symmetric.
  // Errors: kNotFound, kCorrupt (shape; not a sum of squares).
  Result<std::vector<float>> Read(const std::string& matrix_path, int64_t cols) const;
  // How many tokens are in that sum; 0 for an expert that none was sent to. Errors as above.
  Result<int64_t> Rows(const std::string& matrix_path) const;
  // The tensor of the matrix's input: equal for matrices that share it; empty when there is none.
  std::string_view InputName(const std::string& matrix_path) const;

 private:
  HessianFile() = default;
  Status ReadMetadata();
  Status ReadSamples();
  const SourceTensor* Find(std::string_view name) const;
  Status Missing(const std::string& matrix_path) const;

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  SafetensorsFile tensors_;
  std::string fingerprint_;
  const SourceTensor* samples_ = nullptr;
  std::map<std::string, std::string, std::less<>> tensor_of_;     // matrix path -> tensor name
  std::map<std::string_view, const SourceTensor*> tensor_named_;  // into tensors_
};

class HessianWriter {
 public:
  struct Input {
    std::vector<std::string> matrices;  // that share it; the first names the tensor
    int64_t cols = 0;
    const std::string& name() const { return matrices.front(); }
    int64_t bytes() const { return cols * cols * static_cast<int64_t>(sizeof(float)); }
  };

  using Samples = std::vector<std::span<const int32_t>>;  // of one length

  // The file appears at `path` whole, by Finish, or not at all; an older one is replaced. Until
  // then it is `path`.partial, where an interrupted run with the same arguments left off: its
  // inputs stay. `settings`: what else decides the sums. Errors: kIo, kBusy (a run at work there).
  static Result<std::unique_ptr<HessianWriter>> Create(const std::string& path,
                                                       const std::vector<Input>& inputs,
                                                       const Samples& samples,
                                                       const std::string& fingerprint,
                                                       const std::string& settings);
  // Inputs, from the first, that need no Append any more.
  size_t num_done() const { return num_done_; }
  // In the order of the inputs. sums [cols, cols] of that many rows.
  Status Append(const Input& input, std::span<const float> sums, int64_t rows);
  // What is there now shall survive a failure.
  void Keep() { writer_->Keep(); }
  Status Finish();

 private:
  HessianWriter() = default;
  std::string path_;
  std::string staged_path_;
  std::unique_ptr<SafetensorsWriter> writer_;
  size_t num_done_ = 0;
};

}  // namespace tq
