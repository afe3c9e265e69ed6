// Element types of stored tensors, with the names that safetensors uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tq {

enum class DType : uint8_t { kF32, kF16, kBf16, kF64, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kBool, kF8E4M3, kF8E5M2, kE8M0 };

size_t DTypeBytes(DType type);
std::string_view DTypeName(DType type);                      // "F32", "BF16", ...
std::optional<DType> DTypeFromName(std::string_view name);

}  // namespace tq
