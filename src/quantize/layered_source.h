// LayeredSource: a checkpoint in which some matrices are replaced by those of another one, say a
// conversion of a part. Everything else, the documents too, is the first one's.
#pragma once

#include <string>
#include <vector>

#include "weights/source.h"

namespace tq {

class LayeredSource : public WeightSource {
 public:
  // paths: of the matrices ("model.layers.0.mlp.up_proj") that come from `top`; their biases stay.
  // Both sources must outlive this one.
  LayeredSource(const WeightSource& base, const WeightSource& top,
                const std::vector<std::string>& paths);

  const std::string& path() const override { return base_.path(); }
  std::string_view container() const override { return base_.container(); }
  const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  CheckpointFacts facts() const override { return base_.facts(); }
  Result<std::string> ReadDocument(const std::string& name) const override {
    return base_.ReadDocument(name);
  }
  std::vector<std::string> DocumentNames() const override { return base_.DocumentNames(); }
  void DropPages(const SourceTensor& tensor) const override;

 private:
  const WeightSource& base_;
  const WeightSource& top_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace tq
