// Writer of one safetensors file: all tensors are declared first, then their bytes follow in that
// order, so that no tensor has to be in memory as a whole. Little-endian hosts write values as they
// are.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace tq {

class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
  };

  // Creates `path` and writes the header. Errors: kInvalidArgument (a name twice, not UTF-8 or
  // "__metadata__", a negative or overflowing shape), kIo.
  static Result<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, std::vector<Tensor> tensors,
      const std::map<std::string, std::string>& metadata);
  // Create, unless `path` holds the start of the same file (an equal header): then the tensors that
  // are complete in it stay, and next() is the first that is not. The file is locked while it is
  // written. Errors: as Create; kBusy when another process writes it.
  static Result<std::unique_ptr<SafetensorsWriter>> CreateOrContinue(
      const std::string& path, std::vector<Tensor> tensors,
      const std::map<std::string, std::string>& metadata);
  // Without Finish() the file is removed, unless Keep() was called: a failed run leaves nothing
  // that loads, at most something to continue.
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  // The next bytes of tensor `name`, in pieces of any size. A tensor must be complete before the
  // next one begins; tensors without elements need no call. Errors: kInvalidArgument (out of order,
  // a short tensor before, more bytes than declared), kIo.
  Status Append(std::string_view name, std::span<const std::byte> bytes);
  // Errors: kInvalidArgument when bytes are missing, kIo.
  Status Finish();

  // Name of the tensor that takes the next bytes; empty: all are complete.
  std::string_view next() const;
  void Keep() { keep_ = true; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  SafetensorsWriter(std::string path, std::vector<Tensor> tensors)
      : path_(std::move(path)), tensors_(std::move(tensors)) {}
  Status WriteHeader(const std::map<std::string, std::string>& metadata, bool may_continue);
  // Whether path_ begins with `start` (length and header); then file_ is open behind its last whole
  // tensor.
  Result<bool> OpenStarted(std::string_view start);
  Status Write(const void* data, size_t size);
  void SkipComplete();

  std::string path_;
  std::vector<Tensor> tensors_;
  std::vector<uint64_t> sizes_;  // bytes of each tensor
  std::unique_ptr<std::FILE, CloseFile> file_;
  size_t current_ = 0;    // tensor that takes the next bytes
  uint64_t written_ = 0;  // bytes of it that are there
  bool finished_ = false;
  bool keep_ = false;
};

}  // namespace tq
