#include "weights/safetensors_writer.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "base/json.h"

namespace tq {
namespace {

// Bytes of a tensor, or nothing when the shape is negative or overflows.
std::optional<uint64_t> TensorBytes(const SafetensorsWriter::Tensor& tensor) {
  constexpr uint64_t kLimit = std::numeric_limits<int64_t>::max();
  uint64_t bytes = DTypeBytes(tensor.dtype);
  bool empty = false;
  for (const int64_t dim : tensor.shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
    } else if (bytes > kLimit / static_cast<uint64_t>(dim)) {
      return std::nullopt;
    } else {
      bytes *= static_cast<uint64_t>(dim);
    }
  }
  return empty ? 0 : bytes;
}

// The header text, padded with spaces so that the data begins at a multiple of 8.
Result<std::string> HeaderText(const OrderedJson& header, const std::string& path) {
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    return InvalidArgument(path + ": a tensor name or metadata text is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, std::vector<Tensor> tensors,
    const std::map<std::string, std::string>& metadata) {
  std::unique_ptr<SafetensorsWriter> writer(new SafetensorsWriter(path, std::move(tensors)));
  TQ_RETURN_IF_ERROR(writer->WriteHeader(metadata, false));
  return writer;
}

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::CreateOrContinue(
    const std::string& path, std::vector<Tensor> tensors,
    const std::map<std::string, std::string>& metadata) {
  std::unique_ptr<SafetensorsWriter> writer(new SafetensorsWriter(path, std::move(tensors)));
  TQ_RETURN_IF_ERROR(writer->WriteHeader(metadata, true));
  return writer;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_ == nullptr || finished_) return;
  file_.reset();
  if (!keep_) std::remove(path_.c_str());
}

Status SafetensorsWriter::WriteHeader(const std::map<std::string, std::string>& metadata,
                                      bool may_continue) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    const std::string where = path_ + ": tensor \"" + tensor.name + "\": ";
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      return InvalidArgument(where + "name reserved or declared twice");
    }
    const std::optional<uint64_t> bytes = TensorBytes(tensor);
    if (!bytes || offset > std::numeric_limits<int64_t>::max() - *bytes) {
      return InvalidArgument(where + "shape " + ShapeString(tensor.shape) +
                             " is negative or overflows");
    }
    sizes_.push_back(*bytes);
    header[tensor.name] = {{"dtype", DTypeName(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + *bytes}}};
    offset += *bytes;
  }
  TQ_ASSIGN_OR_RETURN(const std::string text, HeaderText(header, path_));
  std::string start(8, '\0');
  for (size_t i = 0; i < 8; ++i) {
    start[i] = static_cast<char>((static_cast<uint64_t>(text.size()) >> (8 * i)) & 0xFF);
  }
  start += text;
  if (may_continue) {
    TQ_ASSIGN_OR_RETURN(const bool continued, OpenStarted(start));
    if (continued) return Status::Ok();
  } else {
    file_.reset(std::fopen(path_.c_str(), "wb"));
    if (file_ == nullptr) return IoError(path_ + ": cannot create: " + std::strerror(errno));
  }
  TQ_RETURN_IF_ERROR(Write(start.data(), start.size()));
  SkipComplete();
  return Status::Ok();
}

Result<bool> SafetensorsWriter::OpenStarted(std::string_view start) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path_.c_str(), "a+b"));
  if (file == nullptr) return IoError(path_ + ": cannot create: " + std::strerror(errno));
  if (flock(fileno(file.get()), LOCK_EX | LOCK_NB) != 0) {
    return Busy(path_ + ": expected to be its only writer, found another process: wait for it");
  }
  file_ = std::move(file);
  std::string found(start.size(), '\0');
  std::rewind(file_.get());
  const bool same =
      std::fread(found.data(), 1, found.size(), file_.get()) == found.size() && found == start;
  uint64_t keep = 0;
  if (same && std::fseek(file_.get(), 0, SEEK_END) == 0) {
    uint64_t there = static_cast<uint64_t>(std::ftell(file_.get())) - start.size();
    keep = start.size();
    for (; current_ < sizes_.size() && sizes_[current_] <= there; ++current_) {
      there -= sizes_[current_];
      keep += sizes_[current_];
    }
  }
  std::rewind(file_.get());  // appending ignores the position, but reading must end first
  if (ftruncate(fileno(file_.get()), static_cast<off_t>(keep)) != 0) {
    return IoError(path_ + ": cannot be cut: " + std::strerror(errno));
  }
  return same;
}

std::string_view SafetensorsWriter::next() const {
  return current_ < tensors_.size() ? std::string_view(tensors_[current_].name)
                                    : std::string_view();
}

Status SafetensorsWriter::Write(const void* data, size_t size) {
  if (size > 0 && std::fwrite(data, 1, size, file_.get()) != size) {
    return IoError(path_ + ": cannot write: " + std::strerror(errno));
  }
  return Status::Ok();
}

void SafetensorsWriter::SkipComplete() {
  while (current_ < tensors_.size() && written_ == sizes_[current_]) {
    ++current_;
    written_ = 0;
  }
}

Status SafetensorsWriter::Append(std::string_view name, std::span<const std::byte> bytes) {
  TQ_CHECK(file_ != nullptr && !finished_);
  if (bytes.empty()) return Status::Ok();
  const std::string where = path_ + ": tensor \"" + std::string(name) + "\": ";
  if (current_ == tensors_.size()) {
    return InvalidArgument(where + "more bytes than declared, all tensors are complete");
  }
  if (name != tensors_[current_].name) {
    return InvalidArgument(where + "expected bytes of \"" + tensors_[current_].name + "\" next (" +
                           std::to_string(written_) + " of " + std::to_string(sizes_[current_]) +
                           " are there)");
  }
  if (bytes.size() > sizes_[current_] - written_) {
    return InvalidArgument(where + "expected " + std::to_string(sizes_[current_]) +
                           " bytes, found at least " + std::to_string(written_ + bytes.size()));
  }
  TQ_RETURN_IF_ERROR(Write(bytes.data(), bytes.size()));
  written_ += bytes.size();
  SkipComplete();
  return Status::Ok();
}

Status SafetensorsWriter::Finish() {
  TQ_CHECK(file_ != nullptr && !finished_);
  if (current_ != tensors_.size()) {
    return InvalidArgument(path_ + ": tensor \"" + tensors_[current_].name + "\": expected " +
                           std::to_string(sizes_[current_]) + " bytes, found " +
                           std::to_string(written_));
  }
  if (std::fflush(file_.get()) != 0) {
    return IoError(path_ + ": cannot write: " + std::strerror(errno));
  }
  finished_ = true;
  if (std::fclose(file_.release()) != 0) {
    const Status status = IoError(path_ + ": cannot close: " + std::strerror(errno));
    std::remove(path_.c_str());
    return status;
  }
  return Status::Ok();
}

}  // namespace tq
