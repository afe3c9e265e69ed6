#include "apps/token_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "weights/safetensors.h"

namespace tq {
namespace {

Status BadId(const std::string& path, size_t index, const std::string& found) {
  return InvalidArgument(
      fmt::format("{}: token {}: expected an id in [0, 2^31), found {}", path, index, found));
}

Result<std::vector<int32_t>> FromJson(const std::string& path) {
  TQ_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  TQ_ASSIGN_OR_RETURN(const Json document, ParseJson(text, path));
  if (!document.is_array()) {
    return InvalidArgument(
        fmt::format("{}: expected a list of token ids, found {}", path, document.type_name()));
  }
  std::vector<int32_t> ids;
  for (const Json& value : document) {
    const bool fits = value.is_number_integer() && value.get<double>() >= 0 &&
                      value.get<double>() <= std::numeric_limits<int32_t>::max();
    if (!fits) {
      return BadId(path, ids.size(), value.is_number() ? value.dump() : value.type_name());
    }
    ids.push_back(value.get<int32_t>());
  }
  return ids;
}

template <typename T>
Result<std::vector<int32_t>> FromTensor(const std::string& path, std::span<const std::byte> bytes) {
  std::vector<int32_t> ids;
  ids.reserve(bytes.size() / sizeof(T));
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if (value < 0 || static_cast<int64_t>(value) > std::numeric_limits<int32_t>::max()) {
      return BadId(path, i, fmt::to_string(value));
    }
    ids.push_back(static_cast<int32_t>(value));
  }
  return ids;
}

Result<std::vector<int32_t>> FromSafetensors(const std::string& path) {
  TQ_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(path));
  TQ_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(mapped->bytes(), path));
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [](const SourceTensor& t) { return t.name == "tokens"; });
  if (found == file.tensors.end()) {
    return NotFound(fmt::format("{}: expected a tensor \"tokens\", found {} others", path,
                                file.tensors.size()));
  }
  if (found->shape.size() == 1 && found->dtype == DType::kI32) {
    return FromTensor<int32_t>(path, found->bytes);
  }
  if (found->shape.size() == 1 && found->dtype == DType::kI64) {
    return FromTensor<int64_t>(path, found->bytes);
  }
  return InvalidArgument(
      fmt::format("{}: \"tokens\": expected I32 or I64 of one dimension, found {} {}", path,
                  DTypeName(found->dtype), ShapeString(found->shape)));
}

}  // namespace

Result<std::vector<int32_t>> ReadTokenFile(const std::string& path) {
  Result<std::vector<int32_t>> ids =
      path.ends_with(".safetensors") ? FromSafetensors(path) : FromJson(path);
  if (ids.ok() && ids.value().empty()) {
    return InvalidArgument(fmt::format("{}: expected at least one token id, found none", path));
  }
  return ids;
}

}  // namespace tq
