#include "weights/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kLengthBytes = 8;

uint64_t ReadU64(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

struct Entry {
  uint64_t begin = 0;
  uint64_t end = 0;
  SourceTensor tensor;
};

// One tensor of the header; `where` names file and tensor.
class EntryParser {
 public:
  EntryParser(const Json& entry, std::string where) : entry_(entry), where_(std::move(where)) {}

  Result<Entry> Parse() {
    Entry out;
    if (!entry_.is_object()) return Bad("expected an object");
    for (const auto& [key, value] : entry_.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return Bad("unknown key \"" + key + "\" (expected dtype, shape, data_offsets)");
      }
    }
    TQ_RETURN_IF_ERROR(ParseDType(out.tensor));
    TQ_RETURN_IF_ERROR(ParseShape(out.tensor));
    TQ_RETURN_IF_ERROR(ParseRange(out));
    return out;
  }

 private:
  Status Bad(const std::string& what) const { return Corrupt(where_ + ": " + what); }

  Status ParseDType(SourceTensor& tensor) const {
    const auto it = entry_.find("dtype");
    if (it == entry_.end() || !it->is_string()) return Bad("\"dtype\" must be a string");
    const std::string& name = it->get_ref<const std::string&>();
    const std::optional<DType> type = DTypeFromName(name);
    if (!type) return Unsupported(where_ + ": unknown dtype \"" + name + "\"");
    tensor.dtype = *type;
    tensor.is_float_like = true;
    if (*type == DType::kF32) {
      tensor.codec = CodecId::kF32;
    } else if (*type == DType::kF16) {
      tensor.codec = CodecId::kF16;
    } else if (*type == DType::kBf16) {
      tensor.codec = CodecId::kBf16;
    } else {
      tensor.is_float_like = false;
    }
    return Status::Ok();
  }

  Status ParseShape(SourceTensor& tensor) {
    const auto it = entry_.find("shape");
    if (it == entry_.end() || !it->is_array()) return Bad("\"shape\" must be a list");
    // Zeros are left out of the overflow check, so that no order of multiplication can overflow.
    constexpr uint64_t kLimit = std::numeric_limits<int64_t>::max();
    uint64_t nonzero_bytes = DTypeBytes(tensor.dtype);
    bool empty = false;
    for (const Json& dim : *it) {
      if (!dim.is_number_unsigned() || dim.get<uint64_t>() > kLimit) {
        return Bad("shape holds " + dim.dump() + ", expected sizes >= 0");
      }
      const uint64_t size = dim.get<uint64_t>();
      tensor.shape.push_back(static_cast<int64_t>(size));
      if (size == 0) {
        empty = true;
      } else if (nonzero_bytes > kLimit / size) {
        return Bad("shape " + it->dump() + " overflows 63 bits");
      } else {
        nonzero_bytes *= size;
      }
    }
    expected_bytes_ = empty ? 0 : nonzero_bytes;
    return Status::Ok();
  }

  Status ParseRange(Entry& out) const {
    const auto it = entry_.find("data_offsets");
    if (it == entry_.end() || !it->is_array() || it->size() != 2 ||
        !(*it)[0].is_number_unsigned() || !(*it)[1].is_number_unsigned()) {
      return Bad("\"data_offsets\" must be two sizes");
    }
    out.begin = (*it)[0].get<uint64_t>();
    out.end = (*it)[1].get<uint64_t>();
    if (out.begin > out.end) return Bad("data_offsets " + it->dump() + " end before they begin");
    if (out.end - out.begin != expected_bytes_) {
      return Bad("expected " + std::to_string(expected_bytes_) + " bytes for " +
                 std::string(DTypeName(out.tensor.dtype)) + ' ' + ShapeString(out.tensor.shape) +
                 ", data_offsets " + it->dump() + " hold " + std::to_string(out.end - out.begin));
    }
    return Status::Ok();
  }

  const Json& entry_;
  std::string where_;
  uint64_t expected_bytes_ = 0;
};

Status ParseMetadata(const Json& value, const std::string& where,
                     std::map<std::string, std::string>& out) {
  if (value.is_null()) return Status::Ok();  // the format's own reader takes null for none
  if (!value.is_object()) return Corrupt(where + ": __metadata__ must be an object");
  for (const auto& [key, item] : value.items()) {
    if (!item.is_string()) {
      return Corrupt(where + ": __metadata__ \"" + key + "\" must be a string");
    }
    out.emplace(key, item.get<std::string>());
  }
  return Status::Ok();
}

// Sorted by offset, tensors must touch: begin at 0, no gap, no overlap, end with the file.
Status CheckCoverage(std::vector<Entry>& entries, uint64_t data_bytes, const std::string& where) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const Entry& entry : entries) {
    const std::string range =
        "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + ")";
    const std::string name = where + ": tensor \"" + entry.tensor.name + "\": ";
    if (entry.end > data_bytes) {
      return Corrupt(name + "bytes " + range + " leave the data section of " +
                     std::to_string(data_bytes) + " bytes (file truncated?)");
    }
    if (entry.begin != covered) {
      return Corrupt(name + "bytes " + range +
                     (entry.begin < covered ? " overlap the tensor before, which ends at "
                                            : " leave a hole after byte ") +
                     std::to_string(covered));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    return Corrupt(where + ": tensors end at byte " + std::to_string(covered) +
                   " of the data section, which has " + std::to_string(data_bytes) + " bytes");
  }
  return Status::Ok();
}

Result<std::string_view> FindHeader(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() < kLengthBytes) {
    return Corrupt(where + ": expected at least 8 bytes of safetensors, found " +
                   std::to_string(bytes.size()));
  }
  const uint64_t length = ReadU64(bytes);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
    return Corrupt(where + ": header length " + std::to_string(length) + " exceeds the file of " +
                   std::to_string(bytes.size()) + " bytes or the limit of " +
                   std::to_string(kMaxHeaderBytes));
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (header.empty() || header.front() != '{') {
    return Corrupt(where + ": the header must begin with '{'");
  }
  return header;
}

}  // namespace

Result<SafetensorsFile> ParseSafetensors(std::span<const std::byte> bytes,
                                         const std::string& where) {
  TQ_ASSIGN_OR_RETURN(const std::string_view header, FindHeader(bytes, where));
  TQ_ASSIGN_OR_RETURN(const Json json, ParseJson(header, where + " header", 8));
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header.size());

  SafetensorsFile out;
  std::vector<Entry> entries;
  entries.reserve(json.size());
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      TQ_RETURN_IF_ERROR(ParseMetadata(value, where, out.metadata));
      continue;
    }
    TQ_ASSIGN_OR_RETURN(Entry entry,
                        EntryParser(value, where + ": tensor \"" + name + "\"").Parse());
    entry.tensor.name = name;
    entries.push_back(std::move(entry));
  }
  TQ_RETURN_IF_ERROR(CheckCoverage(entries, data.size(), where));

  out.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    out.tensors.push_back(std::move(entry.tensor));
  }
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
  return out;
}

}  // namespace tq
