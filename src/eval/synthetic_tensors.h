// Which tensors a synthetic checkpoint has for what a model needs, and what kind of values they
// hold.
#pragma once

#include <vector>

#include "eval/synthetic_source.h"
#include "weights/tensor_need.h"

namespace tq {

enum class SyntheticKind : uint8_t { kWords, kFloats, kScales, kSigns, kOnes, kCodebook };

// The need is met by a TurboQuant matrix, else by bf16.
bool IsSyntheticCoded(const TensorNeed& need, const SyntheticOptions& options);
// Without bytes.
std::vector<SourceTensor> SyntheticTensors(const TensorNeed& need, const SyntheticOptions& options);
SyntheticKind SyntheticKindOf(const SourceTensor& tensor);
int64_t SyntheticBytes(const SourceTensor& tensor);

}  // namespace tq
