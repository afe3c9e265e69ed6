#include "weights/gguf_container.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <utility>

#include "weights/quote.h"

namespace tq {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMinKeyValueBytes = 8 + 4 + 1;        // empty key and a bool
constexpr uint64_t kMinTensorInfoBytes = 8 + 4 + 4 + 8;  // empty name, no dimensions
constexpr uint32_t kMaxDims = 4;
constexpr int kMaxArrayDepth = 8;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 31;
constexpr uint64_t kMaxSize = std::numeric_limits<int64_t>::max();

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {}

  Result<GgufFile> Parse();

 private:
  Status Bad(const std::string& what) const { return Corrupt(where_ + ": " + what); }
  uint64_t left() const { return bytes_.size() - position_; }

  template <typename T>
  Result<T> Read(std::string_view what);
  Result<std::string_view> ReadString(const std::string& what);
  Status ReadHeader();
  Status ReadKeyValue(uint64_t index);
  Result<GgufType> ReadType(const std::string& what);
  Status ReadItems(const std::string& what, int depth, GgufValue& value);
  Result<GgufValue> ReadArray(const std::string& what, int depth);
  Status ReadTensorInfo(uint64_t index);
  Status ReadShape(const std::string& what, Shape& shape);
  Status ReadAlignment();
  Status PlaceTensors();
  Status CheckOverlaps() const;

  std::span<const std::byte> bytes_;
  const std::string& where_;
  uint64_t position_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
  std::set<std::string_view> tensor_names_;
  GgufFile file_;
};

template <typename T>
Result<T> Parser::Read(std::string_view what) {
  if (left() < sizeof(T)) {
    return Bad("truncated: file ends at byte " + std::to_string(bytes_.size()) + " inside " +
               std::string(what));
  }
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<uint64_t>(bytes_[position_ + i]) << (8 * i);
  }
  position_ += sizeof(T);
  return static_cast<T>(value);
}

Result<std::string_view> Parser::ReadString(const std::string& what) {
  TQ_ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>(what));
  if (length > left()) {
    return Bad("string of " + std::to_string(length) + " bytes in " + what + ", but only " +
               std::to_string(left()) + " are left");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
  position_ += length;
  return text;
}

Status Parser::ReadHeader() {
  if (left() < kMagic.size()) return Bad("truncated: file ends inside the magic \"GGUF\"");
  const std::string_view magic(reinterpret_cast<const char*>(bytes_.data()), kMagic.size());
  if (magic != kMagic) return Bad("expected the magic \"GGUF\", found " + Quoted(magic));
  position_ = kMagic.size();
  TQ_ASSIGN_OR_RETURN(file_.version, Read<uint32_t>("the version"));
  if (file_.version != 0 && (file_.version & 0xFFFF) == 0) {
    return Unsupported(where_ + ": the file is big-endian (convert it to little-endian)");
  }
  if (file_.version != 2 && file_.version != 3) {
    return Unsupported(where_ + ": expected GGUF version 2 or 3, found " +
                       std::to_string(file_.version));
  }
  TQ_ASSIGN_OR_RETURN(tensor_count_, Read<uint64_t>("the tensor count"));
  TQ_ASSIGN_OR_RETURN(key_count_, Read<uint64_t>("the key count"));
  if (key_count_ > left() / kMinKeyValueBytes) {
    return Bad("key count " + std::to_string(key_count_) + " does not fit into a file of " +
               std::to_string(bytes_.size()) + " bytes");
  }
  return Status::Ok();
}

Result<GgufType> Parser::ReadType(const std::string& what) {
  TQ_ASSIGN_OR_RETURN(const uint32_t type, Read<uint32_t>(what));
  if (type >= kGgufTypeCount) {
    return Unsupported(where_ + ": " + what + ": unknown value type " + std::to_string(type));
  }
  return static_cast<GgufType>(type);
}

// The `value.count` items of `value`, whose type is set.
Status Parser::ReadItems(const std::string& what, int depth, GgufValue& value) {
  const uint64_t item_bytes = GgufTypeBytes(value.type);
  // A string takes at least its length, an array its item type and count.
  const uint64_t least = item_bytes > 0 ? item_bytes : value.type == GgufType::kString ? 8 : 12;
  if (value.count > left() / least) {
    return Bad("truncated: " + std::to_string(value.count) + " items of " + what +
               " do not fit into the " + std::to_string(left()) + " bytes that are left");
  }
  if (item_bytes > 0) {
    value.raw = bytes_.subspan(position_, value.count * item_bytes);
    position_ += value.raw.size();
    if (value.type == GgufType::kBool) {
      for (const std::byte byte : value.raw) {
        if (byte > std::byte{1}) return Bad(what + ": expected a bool of 0 or 1");
      }
    }
    return Status::Ok();
  }
  for (uint64_t i = 0; i < value.count; ++i) {
    if (value.type == GgufType::kString) {
      TQ_ASSIGN_OR_RETURN(const std::string_view text, ReadString(what));
      value.strings.push_back(text);
    } else {
      TQ_ASSIGN_OR_RETURN(GgufValue item, ReadArray(what, depth + 1));
      value.arrays.push_back(std::move(item));
    }
  }
  return Status::Ok();
}

Result<GgufValue> Parser::ReadArray(const std::string& what, int depth) {
  if (depth > kMaxArrayDepth) {
    return Bad(what + ": arrays nested deeper than " + std::to_string(kMaxArrayDepth) + " levels");
  }
  GgufValue value;
  value.is_array = true;
  TQ_ASSIGN_OR_RETURN(value.type, ReadType(what));
  TQ_ASSIGN_OR_RETURN(value.count, Read<uint64_t>(what));
  TQ_RETURN_IF_ERROR(ReadItems(what, depth, value));
  return value;
}

Status Parser::ReadKeyValue(uint64_t index) {
  TQ_ASSIGN_OR_RETURN(const std::string_view key, ReadString("key " + std::to_string(index)));
  if (key.empty()) return Bad("key " + std::to_string(index) + " is empty");
  const std::string what = "key " + Quoted(key);
  TQ_ASSIGN_OR_RETURN(const GgufType type, ReadType(what));
  GgufValue value;
  value.type = type;
  if (type == GgufType::kArray) {
    TQ_ASSIGN_OR_RETURN(value, ReadArray(what, 1));
  } else {
    TQ_RETURN_IF_ERROR(ReadItems(what, 1, value));
  }
  if (!file_.keys.emplace(std::string(key), std::move(value)).second) {
    return Bad(what + " appears twice");
  }
  return Status::Ok();
}

Status Parser::ReadShape(const std::string& what, Shape& shape) {
  TQ_ASSIGN_OR_RETURN(const uint32_t dims, Read<uint32_t>(what));
  if (dims > kMaxDims) {
    return Bad(what + ": expected at most 4 dimensions, found " + std::to_string(dims));
  }
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dims; ++i) {
    TQ_ASSIGN_OR_RETURN(const uint64_t dim, Read<uint64_t>("the dimensions of " + what));
    if (dim == 0) return Bad(what + ": dimension " + std::to_string(i) + " is zero");
    if (dim > kMaxSize / elements) return Bad(what + ": the number of elements overflows 63 bits");
    elements *= dim;
    shape.push_back(static_cast<int64_t>(dim));
  }
  std::reverse(shape.begin(), shape.end());
  return Status::Ok();
}

Status Parser::ReadTensorInfo(uint64_t index) {
  TQ_ASSIGN_OR_RETURN(const std::string_view name,
                      ReadString("the name of tensor " + std::to_string(index)));
  const std::string what = "tensor " + Quoted(name);
  if (name.empty()) return Bad("tensor " + std::to_string(index) + " has no name");
  if (!tensor_names_.insert(name).second) return Bad(what + " appears twice");
  GgufTensorInfo info;
  info.name = name;
  TQ_RETURN_IF_ERROR(ReadShape(what, info.shape));
  TQ_ASSIGN_OR_RETURN(const uint32_t type, Read<uint32_t>("the type of " + what));
  info.type = FindGgufTensorType(type);
  if (info.type == nullptr) {
    return Unsupported(where_ + ": " + what + ": unknown tensor type " + std::to_string(type));
  }
  TQ_ASSIGN_OR_RETURN(info.offset, Read<uint64_t>("the offset of " + what));
  file_.tensors.push_back(std::move(info));
  return Status::Ok();
}

Status Parser::ReadAlignment() {
  const auto it = file_.keys.find("general.alignment");
  if (it == file_.keys.end()) return Status::Ok();
  const GgufValue& value = it->second;
  const std::optional<int64_t> alignment = value.is_array ? std::nullopt : value.IntAt(0);
  if (!alignment || *alignment < 1 || static_cast<uint64_t>(*alignment) > kMaxAlignment ||
      !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
    return Bad("key \"general.alignment\": expected a power of two up to 2^31, found " +
               (alignment ? std::to_string(*alignment) : value.TypeName()));
  }
  file_.alignment = static_cast<uint64_t>(*alignment);
  return Status::Ok();
}

// Gives every tensor its bytes; position_ is the end of the infos.
Status Parser::PlaceTensors() {
  if (file_.tensors.empty()) return Status::Ok();
  const uint64_t padding = (file_.alignment - position_ % file_.alignment) % file_.alignment;
  const uint64_t data_bytes = left() > padding ? left() - padding : 0;
  for (GgufTensorInfo& info : file_.tensors) {
    const std::string what = "tensor " + Quoted(info.name) + ": ";
    const uint64_t row = info.shape.empty() ? 1 : static_cast<uint64_t>(info.shape.back());
    if (row % info.type->block_values != 0) {
      return Bad(what + "rows of " + std::to_string(row) + " values are no multiple of the " +
                 std::to_string(info.type->block_values) + " of a " + std::string(info.type->name) +
                 " block");
    }
    const uint64_t blocks =
        static_cast<uint64_t>(NumElements(info.shape)) / info.type->block_values;
    if (blocks > kMaxSize / info.type->block_bytes) return Bad(what + "its size overflows 63 bits");
    const uint64_t size = blocks * info.type->block_bytes;
    if (info.offset % file_.alignment != 0) {
      return Bad(what + "offset " + std::to_string(info.offset) + " is no multiple of " +
                 std::to_string(file_.alignment));
    }
    if (info.offset > data_bytes || size > data_bytes - info.offset) {
      return Bad(what + "expected " + std::to_string(size) + " bytes at offset " +
                 std::to_string(info.offset) + ", but the data section has " +
                 std::to_string(data_bytes) + " (file truncated?)");
    }
    info.bytes = bytes_.subspan(position_ + padding + info.offset, size);
  }
  return CheckOverlaps();
}

Status Parser::CheckOverlaps() const {
  std::vector<const GgufTensorInfo*> sorted;
  for (const GgufTensorInfo& info : file_.tensors) sorted.push_back(&info);
  std::sort(sorted.begin(), sorted.end(),
            [](const GgufTensorInfo* a, const GgufTensorInfo* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const GgufTensorInfo& before = *sorted[i - 1];
    if (sorted[i]->offset < before.offset + before.bytes.size()) {
      return Bad("tensor " + Quoted(sorted[i]->name) + " overlaps tensor " + Quoted(before.name) +
                 " (offset " + std::to_string(sorted[i]->offset) + ", which ends at " +
                 std::to_string(before.offset + before.bytes.size()) + ")");
    }
  }
  return Status::Ok();
}

Result<GgufFile> Parser::Parse() {
  TQ_RETURN_IF_ERROR(ReadHeader());
  for (uint64_t i = 0; i < key_count_; ++i) TQ_RETURN_IF_ERROR(ReadKeyValue(i));
  if (tensor_count_ > left() / kMinTensorInfoBytes) {
    return Bad("tensor count " + std::to_string(tensor_count_) + " does not fit into the " +
               std::to_string(left()) + " bytes after the keys");
  }
  for (uint64_t i = 0; i < tensor_count_; ++i) TQ_RETURN_IF_ERROR(ReadTensorInfo(i));
  TQ_RETURN_IF_ERROR(ReadAlignment());
  TQ_RETURN_IF_ERROR(PlaceTensors());
  return std::move(file_);
}

}  // namespace

Result<GgufFile> ParseGguf(std::span<const std::byte> bytes, const std::string& where) {
  return Parser(bytes, where).Parse();
}

}  // namespace tq
