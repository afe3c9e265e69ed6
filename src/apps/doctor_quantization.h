// Whether config.json says of the matrices what they are.
#pragma once

#include "apps/checkpoint_report.h"
#include "apps/finding.h"
#include "weights/source.h"

namespace tq {

void CheckQuantization(const WeightSource& source, const CheckpointReport& report,
                       Findings& findings);

}  // namespace tq
