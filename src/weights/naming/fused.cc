#include "weights/naming/fused.h"

#include <array>

#include "weights/naming/slices.h"

namespace tq {
namespace {

enum class RowRule : uint8_t {
  kThirds,      // all parts have the same rows
  kQueryFirst,  // the query has o_proj's columns, key and value share the rest
};

struct FusedRule {
  std::string_view fused;
  std::array<std::string_view, 3> parts;
  RowRule rows;
};

constexpr FusedRule kFused[] = {
    {".self_attn.qkv_proj.",
     {".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj."},
     RowRule::kThirds},
    {".self_attn.qkv_conv1d.",
     {".self_attn.q_conv1d.", ".self_attn.k_conv1d.", ".self_attn.v_conv1d."},
     RowRule::kThirds},
    {".self_attn.query_key_value.",
     {".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj."},
     RowRule::kQueryFirst},
};

// Rows of q, k and v in a fused matrix of `rows` rows; zeros when they cannot be told.
std::array<int64_t, 3> PartRows(RowRule rule, int64_t rows, const SourceTensor* output) {
  if (rule == RowRule::kThirds) {
    if (rows % 3 != 0) return {};
    return {rows / 3, rows / 3, rows / 3};
  }
  if (output == nullptr || output->shape.size() != 2) return {};
  const int64_t query = output->shape[1];
  if (query < 1 || query >= rows || (rows - query) % 2 != 0) return {};
  return {query, (rows - query) / 2, (rows - query) / 2};
}

Status AppendParts(const SourceTensor& tensor, const FusedRule& rule, size_t at,
                   const TensorLookup& find, std::vector<SourceTensor>& out) {
  const std::string parent = tensor.name.substr(0, at);
  const std::string part = tensor.name.substr(at + rule.fused.size());
  const SourceTensor* weight = find(parent + std::string(rule.fused) + "weight");
  const SourceTensor* output = find(parent + ".self_attn.o_proj.weight");
  if (weight == nullptr || weight->shape.empty()) {
    return Corrupt("expected a weight beside it, found none");
  }
  const int64_t all_rows = weight->shape[0];
  const std::array<int64_t, 3> rows = PartRows(rule.rows, all_rows, output);
  if (rows[0] == 0) {
    return Corrupt("expected rows of query, key and value, found " + ShapeString(weight->shape));
  }
  const bool shared = IsSharedPart(part) || tensor.shape.empty();
  int64_t begin = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    SourceTensor piece = tensor;
    if (!shared) {
      // Scales of blocks of rows: a part must begin and end with a block.
      const int64_t stored_rows = tensor.shape[0];
      const bool whole = stored_rows > 0 && all_rows % stored_rows == 0 &&
                         begin % (all_rows / stored_rows) == 0 &&
                         rows[i] % (all_rows / stored_rows) == 0;
      if (!whole) {
        return Corrupt("expected rows that part with those of " + ShapeString(weight->shape) +
                       ", found " + ShapeString(tensor.shape));
      }
      const int64_t block = all_rows / stored_rows;
      piece = RowRange(tensor, begin / block, rows[i] / block);
    }
    piece.name = parent + std::string(rule.parts[i]) + part;
    out.push_back(std::move(piece));
    begin += rows[i];
  }
  return Status::Ok();
}

}  // namespace

bool IsSharedPart(std::string_view part) {
  return part == "codebook" || part == "signs" || part == "global_scale" ||
         part == "weight_shape" || part == "qjl_signs";
}

Status AppendFusedParts(const SourceTensor& tensor, const TensorLookup& find,
                        std::vector<SourceTensor>& out) {
  for (const FusedRule& rule : kFused) {
    const size_t at = tensor.name.find(rule.fused);
    if (at == std::string::npos) continue;
    if (tensor.bytes.empty()) return Corrupt("expected values, found " + ShapeString(tensor.shape));
    return AppendParts(tensor, rule, at, find, out);
  }
  out.push_back(tensor);
  return Status::Ok();
}

}  // namespace tq
