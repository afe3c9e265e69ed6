// turboquant convert --dry-run.
#pragma once

#include <string>

#include "base/status.h"
#include "quantize/convert.h"

namespace tq {

// Prints what Convert would do, as a table or as JSON.
Status RunDryRun(const WeightSource& source, const std::string& output,
                 const ConvertOptions& options, bool json);

}  // namespace tq
