// Metadata values of a GGUF file. They point into the mapped file and live as long as it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tq {

enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
constexpr uint32_t kGgufTypeCount = 13;

// Bytes of a number or bool, 0 for strings and arrays.
size_t GgufTypeBytes(GgufType type);

// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool IsUtf8(std::string_view text);

// A value, or an array of values; a single value is an array of one to the accessors.
struct GgufValue {
  bool is_array = false;
  GgufType type = GgufType::kU8;  // of the value or of the array's items
  uint64_t count = 1;
  std::span<const std::byte> raw;  // numbers and bools, little-endian, unaligned
  std::vector<std::string_view> strings;
  std::vector<GgufValue> arrays;  // items of an array of arrays

  bool IsInteger() const;
  bool IsFloat() const { return type == GgufType::kF32 || type == GgufType::kF64; }
  std::string TypeName() const;  // "u32", "array of string"

  // Requires: index < count. Empty: another type, or (IntAt) beyond 63 bits.
  std::optional<int64_t> IntAt(uint64_t index) const;
  std::optional<uint64_t> UnsignedAt(uint64_t index) const;
  std::optional<double> FloatAt(uint64_t index) const;  // f32 and f64
  std::optional<bool> BoolAt(uint64_t index) const;
};

}  // namespace tq
