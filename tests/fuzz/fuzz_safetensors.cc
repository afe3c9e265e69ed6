// Any bytes as a safetensors file: refused with a Status, or every tensor can be read under its
// canonical name, and every matrix in the format that its parts tell.
#include <cstddef>
#include <cstdint>

#include "weights/matrix_tensors.h"
#include "weights/naming/canonical.h"
#include "weights/safetensors.h"

namespace {

class OneFile : public tq::WeightSource {
 public:
  explicit OneFile(std::vector<tq::SourceTensor> tensors) : tensors_(std::move(tensors)) {}
  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "safetensors"; }
  const std::vector<tq::SourceTensor>& tensors() const override { return tensors_; }
  tq::Result<std::string> ReadDocument(const std::string&) const override {
    return tq::NotFound("no documents");
  }
  std::vector<std::string> DocumentNames() const override { return {}; }
  void DropPages(const tq::SourceTensor&) const override {}

 private:
  std::string path_ = "fuzz";
  std::vector<tq::SourceTensor> tensors_;
};

void ReadMatrices(const OneFile& source) {
  constexpr int64_t kMaxWeights = 1 << 20;
  for (const tq::SourceTensor& tensor : source.tensors()) {
    if (!tensor.name.ends_with(".weight") || tensor.shape.size() != 2) continue;
    const std::string path = tensor.name.substr(0, tensor.name.size() - 7);
    for (const int64_t per_element : {1, 2, 8}) {
      const int64_t rows = tensor.shape[0];
      if (rows > kMaxWeights || tensor.shape[1] > kMaxWeights) continue;
      const int64_t cols = tensor.shape[1] * per_element;
      if (rows * cols > kMaxWeights) continue;
      const auto read = tq::ReadMatrix(source, path, rows, cols, true);
      if (read.ok()) (void)tq::MatrixFloats(read->matrix);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto file = tq::ParseSafetensors(bytes, "fuzz.safetensors");
  if (!file.ok()) return 0;
  for (const tq::SourceTensor& tensor : file->tensors) {
    if (tensor.is_float_like) (void)tq::ReadFloats(tensor);
  }
  if (!tq::CanonicalizeTensors("laguna", "fuzz", file->tensors).ok()) return 0;
  for (const tq::SourceTensor& tensor : file->tensors) {
    if (tensor.is_float_like) (void)tq::ReadFloats(tensor);
  }
  ReadMatrices(OneFile(std::move(file->tensors)));
  return 0;
}
