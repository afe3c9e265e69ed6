// SyntheticSource: a checkpoint of a released model's shapes with random weights, made from
// config.json alone: speed and memory of a size need no download. Linear matrices are TurboQuant;
// everything else is bf16. All tensors of a kind share one small buffer, so that the source itself
// costs little.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weights/source.h"

namespace tq {

struct SyntheticOptions {
  int bits = 3;  // 2, 3, 4; 16: bf16
  int group_size = 64;
  int64_t layers = 0;  // only the first ones; 0: all
};

// Names that MakeSynthetic knows, sorted.
std::vector<std::string> SyntheticNames();

// name: "qwen3-4b" ... Errors: kInvalidArgument naming the known ones.
Result<std::unique_ptr<WeightSource>> MakeSynthetic(const std::string& name,
                                                    const SyntheticOptions& options);

}  // namespace tq
