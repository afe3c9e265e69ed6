// Writer of one GGUF v3 file: metadata and tensor infos first, then the tensors' bytes in that
// order, in pieces of any size. Little-endian hosts write values as they are.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/view.h"
#include "weights/gguf_value.h"

namespace tq {

// Key-value pairs as the file stores them. Requires: each key once (a reader refuses duplicates).
class GgufMetadata {
 public:
  void Text(std::string_view key, std::string_view value);
  void Int(std::string_view key, uint32_t value);
  void Float(std::string_view key, float value);
  void Bool(std::string_view key, bool value);
  void Texts(std::string_view key, std::span<const std::string> values);
  void Ints(std::string_view key, std::span<const int32_t> values);
  void Floats(std::string_view key, std::span<const float> values);
  void Bools(std::string_view key, const std::vector<bool>& values);

  uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void Begin(std::string_view key, GgufType type);
  void BeginArray(std::string_view key, GgufType type, size_t count);

  uint64_t count_ = 0;
  std::string bytes_;
};

class GgufWriter {
 public:
  struct Tensor {
    std::string name;
    Shape shape;        // outermost first, at most four
    uint32_t type = 0;  // an id of FindGgufTensorType
    uint64_t bytes() const;
  };

  // Creates `path`, writes the header and gives the file its full length, without data: readers of
  // headers accept it from here on. Requires: known types, whole blocks per row. Errors: kIo.
  static Result<std::unique_ptr<GgufWriter>> Create(const std::string& path,
                                                    const GgufMetadata& metadata,
                                                    std::vector<Tensor> tensors);
  // Without Finish() the file is removed.
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  // The next bytes of tensor `name`. Requires: in order, no more than declared. Errors: kIo.
  Status Append(std::string_view name, std::span<const std::byte> bytes);
  // What was appended is in the file. Errors: kIo.
  Status Flush();
  // Requires: all tensors complete. Errors: kIo.
  Status Finish();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  GgufWriter(std::string path, std::vector<Tensor> tensors)
      : path_(std::move(path)), tensors_(std::move(tensors)) {}
  Status WriteHeader(const GgufMetadata& metadata);
  Status Write(const void* data, size_t size);
  Status IoFailure(const char* what) const;

  std::string path_;
  std::vector<Tensor> tensors_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  size_t current_ = 0;
  uint64_t written_ = 0;  // bytes of the current tensor
  bool finished_ = false;
};

}  // namespace tq
