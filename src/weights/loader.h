// WeightLoader: takes tensors out of a source by name, checks them, and prepares them for a backend.
// It remembers what was taken, so that a checkpoint with tensors that nobody asked for is refused.
// Thread: one caller.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "weights/source.h"
#include "weights/tensor_need.h"

namespace tq {

// A prepared matrix with its bias and name.
struct Linear {
  std::string name;
  std::unique_ptr<Weight> weight;
  std::vector<float> bias;  // empty: none
  MatMulArgs Args(const float* x, float* y, int64_t num_tokens) const {
    return {weight.get(), x, bias.empty() ? nullptr : bias.data(), y, num_tokens};
  }
};

class WeightLoader {
 public:
  // progress(done, total) in bytes of the source; may be empty.
  WeightLoader(const WeightSource& source, Backend& backend, bool config_rotates,
               std::function<void(int64_t, int64_t)> progress);

  // path.weight [rows, cols] in any readable format, and path.bias [rows] when `bias`.
  Result<Linear> LoadLinear(const std::string& path, int64_t rows, int64_t cols, bool bias);
  // `name` is the full tensor name ("model.embed_tokens.weight").
  Result<std::unique_ptr<Weight>> Matrix(const std::string& name, int64_t rows, int64_t cols);
  Result<std::vector<float>> Vector(const std::string& name, int64_t n);

  // Errors: kCorrupt naming tensors that nothing used. `tied`: lm_head copies are fine.
  Status CheckAllUsed(bool tied) const;

 private:
  void Use(const SourceTensor& tensor);

  const WeightSource& source_;
  Backend& backend_;
  bool config_rotates_;
  std::function<void(int64_t, int64_t)> progress_;
  int64_t done_bytes_ = 0;
  int64_t total_bytes_ = 0;
  std::set<std::string, std::less<>> used_;
};

}  // namespace tq
