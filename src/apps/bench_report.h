// What `turboquant bench` has measured, as a table, as JSON and as a line of a record. The JSON is
// described in bench/results/README.md.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tq {

struct OpShare {
  std::string name;
  double share;  // of the row's time
  int64_t calls;
};

struct BenchRow {
  std::string phase;  // "prefill" or "decode"
  int batch = 1;
  int64_t depth = 0;
  int64_t tokens = 0;                  // of all sequences, per measurement
  double seconds = 0;                  // decode: the best of the repetitions
  double weight_bytes_per_second = 0;  // 0: not stated
  std::vector<OpShare> ops;            // slowest first; empty: not asked for
};

struct BenchReport {
  std::string name;
  int bits = 0;  // of a synthetic model; else 0
  int group_size = 0;
  std::string model_type;
  int64_t layers = 0;
  std::string isa;
  std::string activations;
  int threads = 0;
  std::string kv;  // format of the KV cache
  int64_t prepared_bytes = 0;
  int64_t decode_bytes = 0;
  double load_seconds = 0;
  int64_t peak_memory_bytes = 0;
  double bandwidth = 0;  // bytes per second, 0: unknown
  std::vector<BenchRow> rows = {};
};

OrderedJson BenchJson(const BenchReport& report);
std::string BenchText(const BenchReport& report);
// One more line at the end of the file, which is made if need be. Errors: kIo.
Status AppendBenchLine(const BenchReport& report, const std::string& path);

}  // namespace tq
