// Which conversion this is: of two with the same fingerprint, each shard has the same bytes.
#pragma once

#include <string>
#include <vector>

#include "quantize/convert_plan.h"
#include "quantize/hessian_file.h"

namespace tq {

// Covers the source's tensors (a sample of their bytes), the output's config.json, every planned
// tensor, the calibration (or null) and the cut into shards.
std::string ConversionFingerprint(const WeightSource& source, const std::vector<ConvertItem>& items,
                                  const std::string& output_config, const HessianFile* calibration,
                                  const ConvertOptions& options);

}  // namespace tq
