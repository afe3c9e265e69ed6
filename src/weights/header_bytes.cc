#include "weights/header_bytes.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "weights/gguf_container.h"

namespace tq {
namespace {

// Walks over a prefix. After a step beyond its end, `ok` is false.
class Walker {
 public:
  explicit Walker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    T value = 0;
    if (Has(sizeof(T))) std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    Skip(sizeof(T));
    return value;
  }
  void Skip(uint64_t count) {
    ok_ = Has(count);
    at_ = ok_ ? at_ + count : at_;
  }
  bool ok() const { return ok_; }
  uint64_t at() const { return at_; }

 private:
  bool Has(uint64_t count) const { return ok_ && count <= bytes_.size() - at_; }
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  bool ok_ = true;
};

constexpr uint32_t kString = 8;
constexpr uint32_t kArray = 9;

// Bytes of a GGUF value of fixed size; 0: another.
uint64_t ValueBytes(uint32_t type) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

Status Bad(const char* expected) {
  return Corrupt(std::string("expected ") + expected + ": not a GGUF file, or a damaged one");
}

Status SkipValue(Walker& walker, uint32_t type, int depth) {
  if (type == kString) {
    walker.Skip(walker.Read<uint64_t>());
    return Status::Ok();
  }
  if (type != kArray) {
    if (ValueBytes(type) == 0) return Bad("a known type of value");
    walker.Skip(ValueBytes(type));
    return Status::Ok();
  }
  constexpr int kMaxDepth = 8;
  if (depth == kMaxDepth) return Bad("arrays that are not nested");
  const auto item = walker.Read<uint32_t>();
  const auto count = walker.Read<uint64_t>();
  if (!walker.ok()) return Status::Ok();
  if (const uint64_t bytes = ValueBytes(item); bytes > 0) {
    walker.Skip(count <= UINT64_MAX / bytes ? count * bytes : UINT64_MAX);
    return Status::Ok();
  }
  for (uint64_t i = 0; i < count && walker.ok(); ++i) {
    TQ_RETURN_IF_ERROR(SkipValue(walker, item, depth + 1));
  }
  return Status::Ok();
}

Status WalkGguf(Walker& walker) {
  constexpr uint32_t kMagic = 0x46554747;
  if (walker.Read<uint32_t>() != kMagic) return Bad("the letters GGUF");
  walker.Skip(4);  // version
  const auto num_tensors = walker.Read<uint64_t>();
  const auto num_keys = walker.Read<uint64_t>();
  for (uint64_t i = 0; i < num_keys && walker.ok(); ++i) {
    walker.Skip(walker.Read<uint64_t>());
    const auto type = walker.Read<uint32_t>();
    if (walker.ok()) TQ_RETURN_IF_ERROR(SkipValue(walker, type, 0));
  }
  for (uint64_t i = 0; i < num_tensors && walker.ok(); ++i) {
    walker.Skip(walker.Read<uint64_t>());
    walker.Skip(uint64_t{8} * walker.Read<uint32_t>());
    walker.Skip(4 + 8);  // type, offset
  }
  return Status::Ok();
}

Result<int64_t> GgufHeader(std::span<const std::byte> prefix, int64_t file_size) {
  Walker walker(prefix);
  TQ_RETURN_IF_ERROR(WalkGguf(walker));
  if (walker.ok()) return static_cast<int64_t>(walker.at());
  const auto size = static_cast<int64_t>(prefix.size());
  if (size >= file_size) return Bad("a header that ends within the file");
  // A vocabulary takes megabytes, and nothing says how many.
  return std::min(std::max(size * 8, int64_t{4096}), file_size);
}

Result<int64_t> SafetensorsHeader(std::span<const std::byte> prefix, int64_t file_size) {
  constexpr int64_t kLength = 8;
  if (static_cast<int64_t>(prefix.size()) < kLength) {
    if (file_size < kLength) return Corrupt("expected a safetensors header, the file ends before");
    return kLength;
  }
  uint64_t length = 0;
  std::memcpy(&length, prefix.data(), kLength);
  if (length > static_cast<uint64_t>(file_size - kLength)) {
    return Corrupt("expected a safetensors header within " + std::to_string(file_size) +
                   " bytes, found one of " + std::to_string(length));
  }
  return static_cast<int64_t>(length) + kLength;
}

}  // namespace

Result<int64_t> HeaderBytes(const std::string& name, std::span<const std::byte> prefix,
                            int64_t file_size) {
  if (name.ends_with(".safetensors")) return SafetensorsHeader(prefix, file_size);
  if (name.ends_with(".gguf")) return GgufHeader(prefix, file_size);
  return Unsupported("expected a .safetensors or .gguf file");
}

Result<std::vector<std::pair<int64_t, int64_t>>> DescribingValues(const std::string& path) {
  std::vector<std::pair<int64_t, int64_t>> out;
  if (!path.ends_with(".gguf")) return out;
  TQ_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(path));
  TQ_ASSIGN_OR_RETURN(const GgufFile file, ParseGguf(mapped->bytes(), path));
  for (const GgufTensorInfo& tensor : file.tensors) {
    if (!tensor.name.starts_with("rope_") || tensor.bytes.empty()) continue;
    const int64_t first = tensor.bytes.data() - mapped->bytes().data();
    out.emplace_back(first, first + static_cast<int64_t>(tensor.bytes.size()));
  }
  return out;
}

}  // namespace tq
