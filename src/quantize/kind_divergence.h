// Measures, for every kind of matrix, how much the model's predictions suffer when the matrices of
// that kind alone are quantized: what AllocateBits needs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quantize/bit_allocation.h"
#include "quantize/convert.h"

namespace tq {

// The same conversion with one width for all matrices.
ConvertOptions UniformBits(const ConvertOptions& options, int bits);

// What a conversion would quantize. Errors: those of PlanConversion.
Result<std::vector<BitCandidate>> ListBitCandidates(const WeightSource& source,
                                                    const ConvertOptions& options);

// The divergence of this checkpoint from the original.
using DivergenceOf = std::function<Result<double>(const WeightSource& source)>;

// options as for the conversion to come (widths apart); its progress counts the weights of all
// kinds together. Each kind is converted at kMeasuredBits into `folder`, which must not exist and
// is gone afterwards. Errors: those of Convert, of OpenSource and of divergence_of.
Result<std::map<std::string, double>> MeasureKinds(const WeightSource& source,
                                                   const ConvertOptions& options,
                                                   const std::string& folder,
                                                   const DivergenceOf& divergence_of);

}  // namespace tq
