#include "weights/gguf_writer.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "base/check.h"
#include "weights/gguf_types.h"

namespace tq {
namespace {

constexpr uint64_t kAlignment = 32;  // the format's default

uint64_t Aligned(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
void Put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void PutText(std::string& out, std::string_view text) {
  Put(out, static_cast<uint64_t>(text.size()));
  out += text;
}

}  // namespace

void GgufMetadata::Begin(std::string_view key, GgufType type) {
  ++count_;
  PutText(bytes_, key);
  Put(bytes_, static_cast<uint32_t>(type));
}

void GgufMetadata::BeginArray(std::string_view key, GgufType type, size_t count) {
  Begin(key, GgufType::kArray);
  Put(bytes_, static_cast<uint32_t>(type));
  Put(bytes_, static_cast<uint64_t>(count));
}

void GgufMetadata::Text(std::string_view key, std::string_view value) {
  Begin(key, GgufType::kString);
  PutText(bytes_, value);
}

void GgufMetadata::Int(std::string_view key, uint32_t value) {
  Begin(key, GgufType::kU32);
  Put(bytes_, value);
}

void GgufMetadata::Float(std::string_view key, float value) {
  Begin(key, GgufType::kF32);
  Put(bytes_, value);
}

void GgufMetadata::Bool(std::string_view key, bool value) {
  Begin(key, GgufType::kBool);
  bytes_ += value ? '\1' : '\0';
}

void GgufMetadata::Texts(std::string_view key, std::span<const std::string> values) {
  BeginArray(key, GgufType::kString, values.size());
  for (const std::string& value : values) PutText(bytes_, value);
}

void GgufMetadata::Ints(std::string_view key, std::span<const int32_t> values) {
  BeginArray(key, GgufType::kI32, values.size());
  for (const int32_t value : values) Put(bytes_, value);
}

void GgufMetadata::Floats(std::string_view key, std::span<const float> values) {
  BeginArray(key, GgufType::kF32, values.size());
  for (const float value : values) Put(bytes_, value);
}

void GgufMetadata::Bools(std::string_view key, const std::vector<bool>& values) {
  BeginArray(key, GgufType::kBool, values.size());
  for (const bool value : values) bytes_ += value ? '\1' : '\0';
}

uint64_t GgufWriter::Tensor::bytes() const {
  const GgufTensorType* known = FindGgufTensorType(type);
  TQ_CHECK(known != nullptr);
  const auto values = static_cast<uint64_t>(NumElements(shape));
  TQ_CHECK(values % known->block_values == 0);
  return values / known->block_values * known->block_bytes;
}

Result<std::unique_ptr<GgufWriter>> GgufWriter::Create(const std::string& path,
                                                       const GgufMetadata& metadata,
                                                       std::vector<Tensor> tensors) {
  std::unique_ptr<GgufWriter> writer(new GgufWriter(path, std::move(tensors)));
  TQ_RETURN_IF_ERROR(writer->WriteHeader(metadata));
  return writer;
}

GgufWriter::~GgufWriter() {
  if (file_ == nullptr || finished_) return;
  file_.reset();
  std::remove(path_.c_str());
}

Status GgufWriter::IoFailure(const char* what) const {
  return IoError(path_ + ": cannot " + what + ": " + std::strerror(errno));
}

Status GgufWriter::WriteHeader(const GgufMetadata& metadata) {
  std::string header = "GGUF";
  Put(header, uint32_t{3});
  Put(header, static_cast<uint64_t>(tensors_.size()));
  Put(header, metadata.count());
  header += metadata.bytes();
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    PutText(header, tensor.name);
    Put(header, static_cast<uint32_t>(tensor.shape.size()));
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) {
      Put(header, static_cast<uint64_t>(*dim));
    }
    Put(header, tensor.type);
    Put(header, offset);
    offset += Aligned(tensor.bytes());
  }
  header.resize(Aligned(header.size()));
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (file_ == nullptr) return IoFailure("create");
  TQ_RETURN_IF_ERROR(Write(header.data(), header.size()));
  const auto total = static_cast<off_t>(header.size() + offset);
  if (std::fflush(file_.get()) != 0 || ::ftruncate(::fileno(file_.get()), total) != 0) {
    return IoFailure("write");
  }
  return Status::Ok();
}

Status GgufWriter::Write(const void* data, size_t size) {
  if (size > 0 && std::fwrite(data, 1, size, file_.get()) != size) return IoFailure("write");
  return Status::Ok();
}

Status GgufWriter::Append(std::string_view name, std::span<const std::byte> bytes) {
  TQ_CHECK(!finished_ && current_ < tensors_.size() && tensors_[current_].name == name);
  const uint64_t size = tensors_[current_].bytes();
  TQ_CHECK(bytes.size() <= size - written_);
  TQ_RETURN_IF_ERROR(Write(bytes.data(), bytes.size()));
  written_ += bytes.size();
  if (written_ < size) return Status::Ok();
  const std::string padding(Aligned(size) - size, '\0');
  ++current_;
  written_ = 0;
  return Write(padding.data(), padding.size());
}

Status GgufWriter::Flush() {
  return std::fflush(file_.get()) == 0 ? Status::Ok() : IoFailure("write");
}

Status GgufWriter::Finish() {
  TQ_CHECK(!finished_ && current_ == tensors_.size());
  TQ_RETURN_IF_ERROR(Flush());
  finished_ = true;
  if (std::fclose(file_.release()) != 0) {
    const Status status = IoFailure("close");
    std::remove(path_.c_str());
    return status;
  }
  return Status::Ok();
}

}  // namespace tq
