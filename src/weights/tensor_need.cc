#include "weights/tensor_need.h"

namespace tq {

Result<std::vector<float>> TensorLoader::ConvKernel(const std::string& name, int64_t channels,
                                                    int64_t kernel) {
  TQ_ASSIGN_OR_RETURN(const std::vector<float> stored,
                      Floats(name, {channels, kernel}, TensorRole::kSmall));
  std::vector<float> out(stored.size());
  for (int64_t i = 0; i < static_cast<int64_t>(stored.size()); ++i) {
    out[static_cast<size_t>(i % kernel * channels + i / kernel)] = stored[static_cast<size_t>(i)];
  }
  return out;
}

Result<Linear> TensorLoader::LoadLinear(const std::string& path, int64_t rows, int64_t cols,
                                        bool bias, TensorRole role) {
  Linear linear;
  linear.name = path;
  TQ_ASSIGN_OR_RETURN(linear.weight, Matrix(path + ".weight", rows, cols, role));
  if (bias) {
    TQ_ASSIGN_OR_RETURN(linear.bias, Vector(path + ".bias", rows, TensorRole::kBias));
  }
  return linear;
}

}  // namespace tq
