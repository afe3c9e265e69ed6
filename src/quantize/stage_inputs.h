// What the matrices of a block read, gathered while samples run through it twice: in the original
// model, and in one whose earlier matrices are rounded already.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/step_context.h"
#include "quantize/convert_plan.h"
#include "quantize/input_sums.h"
#include "quantize/override_backend.h"

namespace tq {

// A matrix to be rounded, and where its prepared form is in the model.
struct RoundingJob {
  const ConvertItem* item = nullptr;
  std::string path;
  const Weight* weight = nullptr;
};

// Matrices that share an input.
struct StageInput {
  std::string name;  // of the first matrix that reads it
  int64_t cols = 0;
  std::vector<RoundingJob> jobs;
  // Of its sums, and of their factors when it is their turn.
  int64_t sum_bytes() const { return 2 * cols * cols * static_cast<int64_t>(sizeof(float)); }
};

using Stage = std::span<const StageInput>;  // whose inputs do not depend on each other's matrices
using RoundingJobs = std::map<std::string, RoundingJob, std::less<>>;

// Which of the jobs read what, in order.
class StageLister : public InputObserver {
 public:
  explicit StageLister(const RoundingJobs& jobs) : jobs_(jobs) {}
  void OnInput(std::span<const std::string_view> names, const float*, int64_t,
               int64_t cols) override {
    StageInput input{std::string(names.front()), cols, {}};
    for (const std::string_view name : names) {
      const auto found = jobs_.find(name);
      if (found != jobs_.end()) input.jobs.push_back(found->second);
    }
    if (!input.jobs.empty()) inputs.push_back(std::move(input));
  }
  std::vector<StageInput> inputs;

 private:
  const RoundingJobs& jobs_;
};

// What a stage's inputs were, over all samples.
struct StageSums {
  InputSums squares;            // of the rounded model's inputs x
  std::vector<float> inputs;    // [cols, cols]: (o - x) x^T, o = the original's inputs
  std::vector<float> residual;  // [residual width, cols]: (difference of the residuals) x^T
  bool has_residual = false;
};

// Sees a stage's inputs twice for every sample: as the original has them, which it keeps, and as
// the rounded model has them, which it adds up. Then the pass may end.
class StageGatherer : public InputObserver {
 public:
  // width: of the residual. stage, backend and pool must outlive it.
  StageGatherer(Stage stage, int64_t width, OverrideBackend& backend, ThreadPool& pool);
  // The next pass is the original's; then the rounded model's of the same sample.
  void BeginPass(bool original);
  void OnInput(std::span<const std::string_view> names, const float* x, int64_t num_tokens,
               int64_t cols) override;
  StageSums& Sums(const StageInput& input) { return sums_.find(input.name)->second; }

 private:
  bool AddsToResidual(size_t num_readers) const;
  void OnResidual(const float* residual, int64_t num_tokens);
  template <typename Then>
  void Keep(const float* x, int64_t count, std::vector<float>& kept, Then&& then);

  Stage stage_;
  int64_t width_;
  OverrideBackend& backend_;
  ThreadPool& pool_;
  bool original_ = true;
  size_t remaining_ = 0;
  std::map<std::string, StageSums, std::less<>> sums_;
  std::map<std::string, std::vector<float>, std::less<>> kept_;
  std::vector<float> kept_residual_;
};

}  // namespace tq
