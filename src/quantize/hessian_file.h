// The calibration file: for every input that matrices of a model share, the sum of x x^T over the
// calibration tokens. A safetensors file with one f32 [cols, cols] tensor per input, named after
// its first matrix ("model.layers.0.self_attn.q_proj"), so that any tool can read it.
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
  int64_t num_tokens() const { return num_tokens_; }

  // kInvalidArgument when the file was made for another checkpoint.
  Status CheckFingerprint(const WeightSource& source) const;
  // The sum for the input of a matrix (path without ".weight") with that many columns, symmetric.
  // Errors: kNotFound, kCorrupt (shape; not a sum of squares).
  Result<std::vector<float>> Read(const std::string& matrix_path, int64_t cols) const;

 private:
  HessianFile() = default;
  Status ReadMetadata();

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  SafetensorsFile tensors_;
  std::string fingerprint_;
  int64_t num_tokens_ = 0;
  std::map<std::string, std::string, std::less<>> tensor_of_;  // matrix path -> tensor name
};

class HessianWriter {
 public:
  struct Input {
    std::vector<std::string> matrices;  // that share it; the first names the tensor
    int64_t cols = 0;
    const std::string& name() const { return matrices.front(); }
    int64_t bytes() const { return cols * cols * static_cast<int64_t>(sizeof(float)); }
  };

  // The file appears at `path` whole, by Finish, or not at all; an older one is replaced.
  // Errors: kIo.
  static Result<std::unique_ptr<HessianWriter>> Create(const std::string& path,
                                                       const std::vector<Input>& inputs,
                                                       int64_t num_tokens,
                                                       const std::string& fingerprint);
  // In the order of `inputs`. sums [cols, cols].
  Status Append(const Input& input, std::span<const float> sums);
  Status Finish();

 private:
  HessianWriter() = default;
  std::string path_;
  std::string staged_path_;
  std::unique_ptr<SafetensorsWriter> writer_;
};

}  // namespace tq
