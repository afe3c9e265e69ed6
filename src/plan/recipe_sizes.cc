#include "plan/recipe_sizes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "codec/turbo_quant.h"
#include "quantize/convert_plan.h"
#include "quantize/recipe.h"

namespace tq {
namespace {

constexpr std::byte kNoBytes[8] = {};  // pointers that say that there is something

StoredMatrix PlainMatrix(DType dtype, int64_t rows, int64_t cols) {
  StoredMatrix matrix;
  matrix.format = {.codec = dtype == DType::kF32   ? CodecId::kF32
                            : dtype == DType::kF16 ? CodecId::kF16
                                                   : CodecId::kBf16,
                   .bits = dtype == DType::kF32 ? 32 : 16};
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.data = kNoBytes;
  matrix.row_bytes = cols * static_cast<int64_t>(DTypeBytes(dtype));
  return matrix;
}

// One matrix of an item, as a load of the converted checkpoint would find it.
StoredMatrix MatrixOf(const ConvertItem& item, std::span<const float> codebook) {
  StoredMatrix matrix = PlainMatrix(item.dtype, item.rows, item.cols);
  if (item.quantize && !item.qjl) {
    matrix.format = {.codec = CodecId::kTurboQuant,
                     .bits = 4,
                     .group = item.spec.group,
                     .transform = item.spec.rotate ? Transform::kHadamard : Transform::kNone};
    matrix.row_bytes = TurboQuantWords(item.spec.codebook_entries, item.cols) * 4;
    matrix.scales = kNoBytes;
    matrix.codebook = codebook.subspan(0, static_cast<size_t>(item.spec.codebook_entries));
  } else if (item.affine) {
    matrix.format = {
        .codec = CodecId::kAffine, .bits = item.affine->bits, .group = item.affine->group};
    matrix.row_bytes = AffineRowBytes(item.affine->bits, item.cols);
    matrix.scales = kNoBytes;
    matrix.biases = kNoBytes;
    matrix.scale_type = item.dtype;
  }
  return matrix;
}

struct Prepared {
  int64_t bytes = 0;
  int64_t matrix_bytes = 0;  // without norms, convolutions and the like
};

Result<Prepared> PreparedOf(const ConvertItem& item, Backend& backend) {
  constexpr int64_t kFewColumns = 16;  // a convolution
  const std::vector<float> codebook(16);
  Prepared out;
  if (item.quantize || item.affine || item.decode) {
    TQ_ASSIGN_OR_RETURN(const auto weight, backend.Prepare(MatrixOf(item, codebook)));
    out.bytes = out.matrix_bytes = weight->bytes() * item.num_matrices();
    return out;
  }
  for (const SafetensorsWriter::Tensor& tensor : item.outputs) {
    const int64_t n = NumElements(tensor.shape);
    const int64_t cols = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (tensor.shape.size() < 2 || n == 0 || cols < kFewColumns) {
      out.bytes += n * static_cast<int64_t>(sizeof(float));
      continue;
    }
    TQ_ASSIGN_OR_RETURN(const auto weight,
                        backend.Prepare(PlainMatrix(tensor.dtype, n / cols, cols)));
    out.bytes += weight->bytes();
    out.matrix_bytes += weight->bytes();
  }
  return out;
}

// docs/quality.md: divergences of a calibrated model of 135 M parameters, which is fragile.
std::string QualityOf(double matrix_bits) {
  if (matrix_bits >= 4) return "near the original (KL .05)";
  if (matrix_bits >= 3) return "calibrate it (KL .2)";
  return "large models only, calibrated (KL 1)";
}

// Which share of a stack of that many routed experts a token reads; nothing: it is no such stack.
std::optional<double> ExpertShareOf(const ModelSpec& model, const ConvertItem& item) {
  if (item.num_matrices() < 2 || item.heads) return std::nullopt;
  for (const BlockSpec& block : model.blocks) {
    for (const FfnSpec* part : {&block.ffn, &block.parallel_ffn}) {
      const auto* moe = std::get_if<MoeSpec>(part);
      if (moe == nullptr || moe->router.num_experts != item.num_matrices()) continue;
      return static_cast<double>(moe->router.top_k) / moe->router.num_experts;
    }
  }
  return std::nullopt;
}

Result<RecipeSize> SizeOf(const WeightSource& source, const ModelSpec& model,
                          const NamedRecipe& named, Backend& backend) {
  RecipeSize out;
  out.name = named.name;
  out.text = named.text;
  ConvertOptions options;
  TQ_ASSIGN_OR_RETURN(const Recipe recipe, ParseRecipe(named.name));
  options.settings = WithRecipe(options.settings, recipe);
  std::vector<ConvertItem> items;
  TQ_ASSIGN_OR_RETURN(const ConvertReport report, PlanConvert(source, options, items));
  out.file_bytes = report.output_bytes;
  out.bits_per_weight = BitsPerWeight(report.output_bytes, report.total_weights);
  out.matrix_bits = BitsPerWeight(report.quantized_bytes, report.quantized_weights);
  out.quality = QualityOf(out.matrix_bits);
  for (const ConvertItem& item : items) {
    TQ_ASSIGN_OR_RETURN(const Prepared prepared, PreparedOf(item, backend));
    out.prepared_bytes += prepared.bytes;
    const bool is_table = item.path.ends_with("embed_tokens") && !model.tie_word_embeddings;
    if (is_table) continue;
    const std::optional<double> share = ExpertShareOf(model, item);
    const auto read =
        static_cast<int64_t>(static_cast<double>(prepared.matrix_bytes) * share.value_or(1.0));
    out.decode_bytes += read;
    if (!share) continue;
    out.expert_bytes += prepared.matrix_bytes;
    out.expert_decode_bytes += read;
  }
  return out;
}

}  // namespace

Result<std::vector<RecipeSize>> SizeRecipes(const WeightSource& source, const ModelSpec& model,
                                            Backend& backend) {
  std::vector<RecipeSize> out;
  Status first_error;
  for (const NamedRecipe& named : KnownRecipes()) {
    Result<RecipeSize> size = SizeOf(source, model, named, backend);
    if (!size.ok()) {
      if (first_error.ok()) first_error = size.status();
      continue;
    }
    // Some say the same of this model, as trits of a dense one.
    const bool known = std::any_of(out.begin(), out.end(), [&](const RecipeSize& other) {
      return other.file_bytes == size->file_bytes;
    });
    if (!known) out.push_back(std::move(size).value());
  }
  if (out.empty()) return first_error;
  std::stable_sort(out.begin(), out.end(), [](const RecipeSize& a, const RecipeSize& b) {
    const auto tenths = [](const RecipeSize& size) { return std::lround(size.matrix_bits * 10); };
    return std::pair(tenths(a), a.bits_per_weight) > std::pair(tenths(b), b.bits_per_weight);
  });
  return out;
}

}  // namespace tq
