#include "weights/gguf_value.h"

#include <bit>
#include <limits>

#include "base/check.h"

namespace tq {
namespace {

struct TypeRow {
  std::string_view name;
  size_t bytes;
};
constexpr TypeRow kTypes[kGgufTypeCount] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};

uint64_t LoadLittle(std::span<const std::byte> bytes) {
  uint64_t out = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    out |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  }
  return out;
}

std::span<const std::byte> ItemBytes(const GgufValue& value, uint64_t index) {
  const size_t size = GgufTypeBytes(value.type);
  TQ_CHECK(index < value.count && value.raw.size() == value.count * size);
  return value.raw.subspan(index * size, size);
}

}  // namespace

size_t GgufTypeBytes(GgufType type) { return kTypes[static_cast<uint32_t>(type)].bytes; }

bool IsUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || lead > 0xF4 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      // The byte after some leads has a narrower range: no overlong forms, surrogates, or >
      // U+10FFFF.
      const int low = k > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const int high = k > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      if (byte < low || byte > high) return false;
    }
    i += length;
  }
  return true;
}

std::string GgufValue::TypeName() const {
  return (is_array ? "array of " : "") + std::string(kTypes[static_cast<uint32_t>(type)].name);
}

bool GgufValue::IsInteger() const {
  switch (type) {
    case GgufType::kF32:
    case GgufType::kF64:
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray:
      return false;
    default:
      return true;
  }
}

std::optional<int64_t> GgufValue::IntAt(uint64_t index) const {
  if (!IsInteger()) return std::nullopt;
  const std::span<const std::byte> bytes = ItemBytes(*this, index);
  const uint64_t bits = LoadLittle(bytes);
  switch (type) {
    case GgufType::kI8:
      return static_cast<int8_t>(bits);
    case GgufType::kI16:
      return static_cast<int16_t>(bits);
    case GgufType::kI32:
      return static_cast<int32_t>(bits);
    case GgufType::kI64:
      return static_cast<int64_t>(bits);
    default:
      if (bits > uint64_t{std::numeric_limits<int64_t>::max()}) return std::nullopt;
      return static_cast<int64_t>(bits);
  }
}

std::optional<uint64_t> GgufValue::UnsignedAt(uint64_t index) const {
  if (type == GgufType::kU64) return LoadLittle(ItemBytes(*this, index));
  const std::optional<int64_t> value = IntAt(index);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<double> GgufValue::FloatAt(uint64_t index) const {
  if (!IsFloat()) return std::nullopt;
  const uint64_t bits = LoadLittle(ItemBytes(*this, index));
  if (type == GgufType::kF64) return std::bit_cast<double>(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

std::optional<bool> GgufValue::BoolAt(uint64_t index) const {
  if (type != GgufType::kBool) return std::nullopt;
  return ItemBytes(*this, index)[0] != std::byte{0};
}

}  // namespace tq
