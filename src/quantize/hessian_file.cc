#include "quantize/hessian_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/json.h"

namespace tq {
namespace {

constexpr const char* kFormat = "turboquant-calibration-1";
// Of each tensor, from its start, middle and end: enough to tell checkpoints of one shape apart.
constexpr size_t kSampleBytes = 256;

class Fnv64 {
 public:
  void Add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) hash_ = (hash_ ^ static_cast<uint64_t>(b)) * 0x100000001B3u;
  }
  void Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

// |h_ij| <= sqrt(h_ii h_jj) holds for every sum of x x^T, and bounds all that follows from it.
bool IsSumOfSquares(std::span<const float> h, int64_t n) {
  std::vector<double> root(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double x = h[static_cast<size_t>(i * n + i)];
    if (!(x >= 0) || !std::isfinite(x)) return false;
    root[static_cast<size_t>(i)] = std::sqrt(x) * 1.001;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      const float x = h[static_cast<size_t>(i * n + j)];
      const double bound = root[static_cast<size_t>(i)] * root[static_cast<size_t>(j)];
      if (!(std::fabs(x) <= bound) || h[static_cast<size_t>(j * n + i)] != x) return false;
    }
  }
  return true;
}

}  // namespace

std::string CheckpointFingerprint(const WeightSource& source) {
  Fnv64 hash;
  for (const SourceTensor& tensor : source.tensors()) {
    hash.Add(tensor.name + ShapeString(tensor.shape));
    const size_t size = tensor.bytes.size();
    const size_t sample = std::min(size, kSampleBytes);
    for (const size_t at : {size_t{0}, (size - sample) / 2, size - sample}) {
      hash.Add(tensor.bytes.subspan(at, sample));
    }
  }
  return fmt::format("{:016x}", hash.value());
}

Result<std::unique_ptr<HessianFile>> HessianFile::Open(const std::string& path) {
  std::unique_ptr<HessianFile> file(new HessianFile());
  file->path_ = path;
  TQ_ASSIGN_OR_RETURN(file->file_, MappedFile::Open(path));
  TQ_ASSIGN_OR_RETURN(file->tensors_, ParseSafetensors(file->file_->bytes(), path));
  TQ_RETURN_IF_ERROR(file->ReadMetadata());
  return file;
}

Status HessianFile::ReadMetadata() {
  const auto value = [this](const std::string& key) {
    const auto found = tensors_.metadata.find(key);
    return found == tensors_.metadata.end() ? std::string() : found->second;
  };
  if (value("format") != kFormat) {
    return Corrupt(path_ +
                   ": expected a file of `turboquant calibrate`, found another safetensors file");
  }
  fingerprint_ = value("fingerprint");
  const std::string tokens = value("tokens");
  const auto [end, error] =
      std::from_chars(tokens.data(), tokens.data() + tokens.size(), num_tokens_);
  if (error != std::errc() || end != tokens.data() + tokens.size() || num_tokens_ < 1) {
    return Corrupt(path_ + ": metadata \"tokens\": expected a count, found \"" + tokens + "\"");
  }
  TQ_ASSIGN_OR_RETURN(const Json matrices,
                      ParseJson(value("matrices"), path_ + " (metadata \"matrices\")"));
  if (!matrices.is_object()) return Corrupt(path_ + ": metadata \"matrices\": expected an object");
  for (const auto& [matrix, tensor] : matrices.items()) {
    if (!tensor.is_string())
      return Corrupt(path_ + ": metadata \"matrices\": expected a name for " + matrix);
    tensor_of_[matrix] = tensor.get<std::string>();
  }
  return Status::Ok();
}

Status HessianFile::CheckFingerprint(const WeightSource& source) const {
  const std::string expected = CheckpointFingerprint(source);
  if (expected == fingerprint_) return Status::Ok();
  return InvalidArgument(
      fmt::format("{}: expected the calibration of {} (fingerprint {}), found that of another "
                  "checkpoint ({}): run `turboquant calibrate --model {}`",
                  path_, source.path(), expected, fingerprint_, source.path()));
}

Result<std::vector<float>> HessianFile::Read(const std::string& matrix_path, int64_t cols) const {
  const auto name = tensor_of_.find(matrix_path);
  const auto tensor = std::find_if(
      tensors_.tensors.begin(), tensors_.tensors.end(),
      [&](const SourceTensor& t) { return name != tensor_of_.end() && t.name == name->second; });
  if (tensor == tensors_.tensors.end()) {
    return NotFound(path_ + ": expected the inputs of " + matrix_path +
                    ", found nothing about it: calibrate again");
  }
  if (tensor->dtype != DType::kF32 || tensor->shape != Shape{cols, cols}) {
    return Corrupt(fmt::format("{}: tensor {}: expected F32 [{}, {}], found {} {}", path_,
                               tensor->name, cols, cols, DTypeName(tensor->dtype),
                               ShapeString(tensor->shape)));
  }
  std::vector<float> sums(static_cast<size_t>(cols * cols));
  std::memcpy(sums.data(), tensor->bytes.data(), tensor->bytes.size());
  file_->DropPages(tensor->bytes);
  if (IsSumOfSquares(sums, cols)) return sums;
  return Corrupt(path_ + ": tensor " + tensor->name +
                 ": expected a sum of x x^T, found values that are none");
}

Result<std::unique_ptr<HessianWriter>> HessianWriter::Create(const std::string& path,
                                                             const std::vector<Input>& inputs,
                                                             int64_t num_tokens,
                                                             const std::string& fingerprint) {
  Json matrices = Json::object();
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const Input& input : inputs) {
    tensors.push_back({input.name(), DType::kF32, {input.cols, input.cols}});
    for (const std::string& matrix : input.matrices) matrices[matrix] = input.name();
  }
  std::unique_ptr<HessianWriter> out(new HessianWriter());
  out->path_ = path;
  out->staged_path_ = fmt::format("{}.partial-{}", path, ::getpid());
  TQ_ASSIGN_OR_RETURN(out->writer_,
                      SafetensorsWriter::Create(out->staged_path_, std::move(tensors),
                                                {{"format", kFormat},
                                                 {"fingerprint", fingerprint},
                                                 {"tokens", std::to_string(num_tokens)},
                                                 {"matrices", matrices.dump()}}));
  return out;
}

Status HessianWriter::Append(const Input& input, std::span<const float> sums) {
  return writer_->Append(input.name(), std::as_bytes(sums));
}

Status HessianWriter::Finish() {
  TQ_RETURN_IF_ERROR(writer_->Finish());
  if (std::rename(staged_path_.c_str(), path_.c_str()) == 0) return Status::Ok();
  const std::string why = std::strerror(errno);
  std::remove(staged_path_.c_str());
  return IoError(fmt::format("{}: expected to replace it, found: {}", path_, why));
}

}  // namespace tq
