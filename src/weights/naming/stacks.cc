#include "weights/naming/stacks.h"

#include "weights/naming/slices.h"

namespace tq {
namespace {

// More than any published model has experts or heads; bounds what a lying file makes us allocate.
constexpr int64_t kMaxItems = 4096;

enum class Layout : uint8_t {
  kWhole,        // the item is one matrix
  kHalves,       // gate rows, then up rows
  kInterleaved,  // gate and up rows alternate
};

// parent + stacked + part -> parent + before + number + after[i] + part
struct StackRule {
  std::string_view stacked;
  std::string_view before;
  std::string_view after[2];
  Layout layout = Layout::kWhole;
};

constexpr StackRule kStacks[] = {
    {".experts.gate_proj.", ".experts.", {".gate_proj.", ""}},
    {".experts.up_proj.", ".experts.", {".up_proj.", ""}},
    {".experts.down_proj.", ".experts.", {".down_proj.", ""}},
    {".experts.gate_up_proj.", ".experts.", {".gate_proj.", ".up_proj."}, Layout::kHalves},
    {".experts.gate_up_interleaved.",
     ".experts.",
     {".gate_proj.", ".up_proj."},
     Layout::kInterleaved},
    {".embed_q.", ".embed_q.", {".", ""}},
    {".unembed_out.", ".unembed_out.", {".", ""}},
};

struct Stack {
  const SourceTensor* tensor;
  std::string parent;
  std::string part;
  Layout layout;
  bool transposed = false;
};

// gpt_oss in bf16 has plain names, and is known by its biases: gate and up alternate, and matrices
// are stored as [in, out].
Status FindOrientation(const StackRule& rule, const TensorLookup& find, Stack& stack) {
  if (stack.part != "weight" || !stack.tensor->is_float_like) return Status::Ok();
  const SourceTensor* bias = find(stack.parent + ".experts.gate_up_interleaved.bias");
  const SourceTensor* fused = find(stack.parent + ".experts.gate_up_proj.weight");
  if (bias == nullptr || fused == nullptr) return Status::Ok();
  if (bias->shape.size() != 2 || fused->shape.size() != 3 ||
      (fused->shape[1] != bias->shape[1] && fused->shape[2] != bias->shape[1])) {
    return Corrupt("expected [experts, hidden, " + ShapeString(bias->shape) +
                   " rows of its bias], found " + ShapeString(fused->shape));
  }
  stack.transposed = fused->shape[2] == bias->shape[1];
  if (rule.layout == Layout::kHalves) stack.layout = Layout::kInterleaved;
  return Status::Ok();
}

Status CheckItem(const SourceTensor& stack, bool transposed, Layout layout) {
  const size_t rank = stack.shape.size();
  const bool packed_blocks = rank == 4 && stack.dtype == DType::kU8;
  if (stack.bytes.empty() || rank < 1 || (rank > 3 && !packed_blocks) || !stack.dense() ||
      stack.shape[0] > kMaxItems || (transposed && rank != 3)) {
    return Corrupt("expected matrices of 1 to " + std::to_string(kMaxItems) +
                   " experts or heads, found " + ShapeString(stack.shape));
  }
  const int64_t rows = transposed ? stack.shape[2] : rank > 1 ? stack.shape[1] : 2;
  if (layout != Layout::kWhole && rows % 2 != 0) {
    return Corrupt("expected as many gate as up rows, found " + ShapeString(stack.shape));
  }
  return Status::Ok();
}

SourceTensor Half(const SourceTensor& item, Layout layout, int64_t half) {
  if (item.shape.empty()) return item;  // one scale for the whole expert
  if (layout == Layout::kInterleaved) return EverySecondRow(item, half);
  const int64_t rows = item.shape[0] / 2;
  return RowRange(item, half * rows, rows);
}

Status AppendStack(const Stack& stack, const StackRule& rule, const TensorLookup& find,
                   std::vector<SourceTensor>& out) {
  const bool shared = IsSharedPart(stack.part) && stack.part != "global_scale";
  const SourceTensor* sized = stack.tensor;
  if (shared) {
    sized = find(stack.parent + std::string(rule.stacked) + "weight");
    if (sized == nullptr) return Corrupt("expected a weight beside it, found none");
  }
  TQ_RETURN_IF_ERROR(CheckItem(*sized, stack.transposed, stack.layout));
  const int64_t halves = stack.layout == Layout::kWhole ? 1 : 2;
  for (int64_t i = 0; i < sized->shape[0]; ++i) {
    SourceTensor item = shared ? *stack.tensor : StackItem(*stack.tensor, i);
    if (stack.transposed) item = Transposed(item);
    for (int64_t half = 0; half < halves; ++half) {
      SourceTensor piece = shared || halves == 1 ? item : Half(item, stack.layout, half);
      piece.name = stack.parent + std::string(rule.before) + std::to_string(i) +
                   std::string(rule.after[half]) + stack.part;
      out.push_back(std::move(piece));
    }
  }
  return Status::Ok();
}

}  // namespace

Status AppendStackItems(const SourceTensor& tensor, const TensorLookup& find,
                        std::vector<SourceTensor>& out) {
  for (const StackRule& rule : kStacks) {
    const size_t at = tensor.name.find(rule.stacked);
    const std::string_view part =
        std::string_view(tensor.name)
            .substr(at == std::string::npos ? tensor.name.size() : at + rule.stacked.size());
    // A number: taken apart already.
    if (part.empty() || (part[0] >= '0' && part[0] <= '9')) continue;
    Stack stack{.tensor = &tensor,
                .parent = tensor.name.substr(0, at),
                .part = std::string(part),
                .layout = rule.layout};
    TQ_RETURN_IF_ERROR(FindOrientation(rule, find, stack));
    return AppendStack(stack, rule, find, out);
  }
  out.push_back(tensor);
  return Status::Ok();
}

}  // namespace tq
