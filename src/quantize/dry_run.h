// DryRun: what Convert would write, from headers alone, and about how long it would take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "quantize/convert.h"

namespace tq {

struct DryRunReport {
  // Matrices of one width; the experts of a stack count one by one.
  struct Width {
    int codebook_entries = 0;  // 3: trits
    int group = 0;
    int64_t matrices = 0;
    int64_t weights = 0;
    int64_t bytes = 0;  // codes, scales, codebooks, signs
  };
  // Tensors without TurboQuant codes, for one reason.
  struct Kept {
    std::string reason;
    int64_t tensors = 0;
    int64_t weights = 0;
    int64_t bytes = 0;
  };

  ConvertReport totals;
  std::vector<Width> widths;  // by width, then group
  std::vector<Kept> kept;     // most bytes first
  int64_t shards = 0;
  int64_t free_bytes = 0;  // at the output
  bool output_exists = false;
  // Of this machine's threads on made-up weights with these settings; empty with a calibration,
  // whose speed depends on the shapes.
  std::optional<double> weights_per_second;
  std::optional<double> seconds() const;
};

// Writes nothing. Errors: as Convert, but for an output that exists; kIo.
Result<DryRunReport> DryRun(const WeightSource& source, const std::string& output_folder,
                            const ConvertOptions& options);

}  // namespace tq
