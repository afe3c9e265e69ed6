// CheckpointParts: what a load makes of a checkpoint's tensors, told from names and config.json
// before anything is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "weights/source.h"

namespace tq {

struct CheckpointParts {
  struct Unused {
    std::string part;  // "vision tower", "audio tower", "draft head"
    int64_t num_tensors = 0;
    int64_t bytes = 0;
  };
  int64_t prepared_bytes = 0;  // stored size of what is read and prepared
  int64_t mapped_bytes = 0;    // of tables that stay in the file (weights/row_table.h)
  std::vector<Unused> unused;  // in the order of the tensors' names
};

// Errors: what reading config.json and ParseModelSpec say.
Result<CheckpointParts> ReadCheckpointParts(const WeightSource& source);

// "vision tower (27 tensors, 12.3 MB), draft head (...)"; empty when all is used.
std::string UnusedText(const CheckpointParts& parts);

}  // namespace tq
