// What a conversion will write: one item per output tensor or quantized matrix, planned from
// headers alone.
#pragma once

#include <string>
#include <vector>

#include "codec/turbo_quant_encode.h"
#include "model/spec.h"
#include "quantize/convert.h"
#include "weights/safetensors_writer.h"
#include "weights/source.h"

namespace tq {

struct ConvertItem {
  std::string path;  // in the output, without ".weight"
  std::vector<std::string>
      sources;       // quantized: paths of the matrices, else tensor names; several: a stack
  int64_t rows = 0;  // of each source
  int64_t cols = 0;
  bool quantize = false;
  TurboQuantSpec spec;        // when quantize
  DType dtype = DType::kF16;  // of the copy, when not
  bool fold_one = false;      // the copy holds 1 + w
  bool decode = false;        // the copy is a quantized source's matrix as f32; sources are paths
  std::vector<SafetensorsWriter::Tensor> outputs;
  int64_t output_bytes = 0;
  int64_t weights() const { return static_cast<int64_t>(sources.size()) * rows * cols; }
};

// Errors: kNotFound, kCorrupt, kUnsupported naming the tensor. warnings: matrices that stay floats
// because their rows are no whole number of groups.
Result<std::vector<ConvertItem>> PlanConversion(const WeightSource& source, const ModelSpec& model,
                                                const ConvertOptions& options,
                                                std::vector<std::string>& warnings);

// How many files Convert cuts the items into.
int64_t CountShards(const std::vector<ConvertItem>& items, int64_t max_bytes);

// All of Convert that needs headers alone: the items, and the report but for its seconds. Errors:
// as Convert.
Result<ConvertReport> PlanConvert(const WeightSource& source, const ConvertOptions& options,
                                  std::vector<ConvertItem>& items);

}  // namespace tq
