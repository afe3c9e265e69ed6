// A block in words, from its spec: for `inspect` and the table of docs/models.md.
#pragma once

#include <string>

#include "model/spec.h"

namespace tq {

// "attention (head norms, window)", "Gated DeltaNet", "latent attention (indexer)", "none".
std::string DescribeMixer(const BlockSpec& block);
// "dense (silu)", "experts 8 of 128 (sigmoid, groups, shared)", "none".
std::string DescribeFfn(const BlockSpec& block);
// "pre", "sandwich", "single", "streams", "attended residuals".
std::string DescribeResidual(const BlockSpec& block);

}  // namespace tq
