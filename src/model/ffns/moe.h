// Mixture of experts: a router picks top_k experts for each token; their weighted sum, plus a
// shared expert where the model has one. Every expert is a set of matrices of its own, so that a
// token's result does not depend on which other tokens chose the same expert.
#pragma once

#include "model/block.h"

namespace tq {

class Moe : public Ffn {
 public:
  static Result<std::unique_ptr<Ffn>> Load(const MoeSpec& spec, const std::string& prefix,
                                           int64_t hidden_size, TensorLoader& loader);
  void Forward(StepContext& step, const float* x, const float* router_x, float* y) const override;
  void VisitWeights(WeightVisitor visit, void* context) const override;

 private:
  struct Expert {
    Linear gate_proj, up_proj, down_proj;
  };
  // Where the rows of each expert lie, after sorting (token, choice) pairs by expert.
  struct Dispatch {
    int64_t num_rows;        // T * top_k
    int32_t* begin;          // [E + 1]: rows of expert e are [begin[e], begin[e + 1])
    int32_t* token_of_row;   // [num_rows]
    int32_t* row_of_choice;  // [T, top_k]
  };

  Moe(const MoeSpec& spec, int64_t hidden_size) : spec_(spec), hidden_(hidden_size) {}
  Status LoadRouter(const std::string& prefix, TensorLoader& loader);
  Status LoadExperts(const std::string& prefix, TensorLoader& loader);
  // Width of what experts read and write.
  int64_t expert_width() const { return spec_.latent_size > 0 ? spec_.latent_size : hidden_; }
  void Route(StepContext& step, const float* x, int32_t* experts, float* weights) const;
  Dispatch Sort(StepContext& step, const int32_t* experts) const;
  void ShowInput(StepContext& step, const float* x) const;
  void RunExperts(StepContext& step, const float* x, const Dispatch& dispatch, float* out) const;
  void AddShared(StepContext& step, const float* x, float* y) const;

  MoeSpec spec_;
  int64_t hidden_;
  Linear router_;
  std::vector<float> selection_bias_;  // [E]
  std::vector<float> router_scale_;    // [hidden]: multiplies the normed router input
  std::vector<float> expert_scale_;    // [E]
  std::vector<Expert> experts_;
  std::unique_ptr<Ffn> shared_;
  Linear shared_gate_;
  Linear latent_down_, latent_up_;
  Norm latent_norm_;
};

}  // namespace tq
