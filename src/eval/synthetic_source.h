// SyntheticSource: a checkpoint of a released model's shapes with random weights, made from
// config.json alone: speed and memory of a size need no download. Linear matrices are TurboQuant;
// everything else is bf16. All tensors of a kind share one buffer as large as the largest of them,
// so that the source itself costs little.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/spec.h"
#include "weights/source.h"

namespace tq {

struct SyntheticOptions {
  int bits = 3;  // 2, 3, 4; 16: bf16
  int group_size = 64;
  int64_t layers = 0;  // only the first ones; 0: all
};

// A size before anything is made of it.
struct SyntheticModel {
  std::string name;
  std::string config;  // config.json
  ModelSpec spec;
  SyntheticOptions options;
};

// Names that FindSynthetic knows, sorted.
std::vector<std::string> SyntheticNames();

// name: "qwen3-4b", ..., or the path of a config.json. Errors: kInvalidArgument naming the known
// ones; of a file, what reading and ParseModelSpec say.
Result<SyntheticModel> FindSynthetic(const std::string& name, const SyntheticOptions& options);

std::unique_ptr<WeightSource> MakeSynthetic(const SyntheticModel& model);

}  // namespace tq
