// convert --target-bpw: measures what every kind of matrix costs and chooses the widths.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/flags.h"
#include "apps/terminal.h"
#include "base/json.h"
#include "quantize/bit_allocation.h"
#include "quantize/convert.h"

namespace tq {

struct TargetBits {
  BitPlan plan;
  std::vector<BitCandidate> candidates;
  std::map<std::string, double> divergences;  // per kind at kMeasuredBits
};

// options: with the calibration, whose samples are the text; `output`: the folder to come, beside
// which a temporary one appears. What was measured is kept in CALIBRATION.kinds.json. Errors: those
// of the conversion and of loading the model.
Result<TargetBits> ChooseBits(const WeightSource& source, const ConvertOptions& options,
                              double target_bits_per_weight, const std::string& output,
                              const CommonFlags& flags, const Console& console);

// settings with the chosen widths; what the config records as the width is the most frequent one.
QuantizeSettings WithBits(QuantizeSettings settings, const TargetBits& chosen);

std::string BitsTable(const TargetBits& chosen);
OrderedJson BitsJson(const TargetBits& chosen);

}  // namespace tq
