// What a conversion will write: one item per output tensor or quantized matrix, planned from
// headers alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/affine_encode.h"
#include "codec/turbo_quant_encode.h"
#include "model/spec.h"
#include "quantize/convert.h"
#include "weights/safetensors_writer.h"
#include "weights/source.h"

namespace tq {

// The matrices of a latent attention's heads, cut out of kv_b_proj: head h is rows
// [h * stride + first, + num_rows), maybe transposed.
struct HeadCut {
  int64_t heads = 0;
  int64_t stride = 0;
  int64_t first = 0;
  int64_t num_rows = 0;
  int64_t rank = 0;  // columns of kv_b_proj
  bool transposed = false;
};

struct ConvertItem {
  std::string path;  // in the output, without ".weight"
  std::vector<std::string>
      sources;       // quantized: paths of the matrices, else tensor names; several: a stack
  int64_t rows = 0;  // of each matrix
  int64_t cols = 0;
  bool quantize = false;
  TurboQuantSpec spec;               // when quantize
  bool measured = true;              // a calibration knows the matrix's inputs
  bool qjl = false;                  // when quantize: with the one-bit residual
  std::optional<AffineSpec> affine;  // codes, scales and biases of dtype
  DType dtype = DType::kF16;         // of the copy, when not quantize
  bool fold_one = false;             // the copy holds 1 + w
  bool decode = false;               // the copy is matrices in dtype; sources are paths
  std::optional<HeadCut> heads;      // with affine or decode: sources[0] is kv_b_proj
  std::string file;                  // of its own; empty: one of the shards
  std::vector<SafetensorsWriter::Tensor> outputs;
  int64_t output_bytes = 0;

  int64_t num_matrices() const {
    return heads ? heads->heads : static_cast<int64_t>(sources.size());
  }
  int64_t weights() const { return num_matrices() * rows * cols; }
};

// Errors: kInvalidArgument (settings that fit no layer), kNotFound, kCorrupt, kUnsupported naming
// the tensor. warnings: matrices that stay floats because their rows are no whole number of groups;
// settings without effect.
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
