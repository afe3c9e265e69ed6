#include "tensor/dtype.h"

#include "base/check.h"

namespace tq {
namespace {
struct Row {
  DType type;
  size_t bytes;
  std::string_view name;
};
constexpr Row kRows[] = {
    {DType::kF32, 4, "F32"},       {DType::kF16, 2, "F16"},       {DType::kBf16, 2, "BF16"},
    {DType::kF64, 8, "F64"},       {DType::kI8, 1, "I8"},         {DType::kU8, 1, "U8"},
    {DType::kI16, 2, "I16"},       {DType::kU16, 2, "U16"},       {DType::kI32, 4, "I32"},
    {DType::kU32, 4, "U32"},       {DType::kI64, 8, "I64"},       {DType::kU64, 8, "U64"},
    {DType::kBool, 1, "BOOL"},     {DType::kF8E4M3, 1, "F8_E4M3"}, {DType::kF8E5M2, 1, "F8_E5M2"},
    {DType::kE8M0, 1, "F8_E8M0"},
};
const Row& Find(DType type) {
  for (const Row& row : kRows) {
    if (row.type == type) return row;
  }
  CheckFailed(__FILE__, __LINE__, "unknown dtype");
}
}  // namespace

size_t DTypeBytes(DType type) { return Find(type).bytes; }
std::string_view DTypeName(DType type) { return Find(type).name; }
std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

}  // namespace tq
