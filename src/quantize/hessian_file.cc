#include "quantize/hessian_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

constexpr const char* kFormat = "turboquant-calibration-2";
constexpr const char* kSamples = "samples";
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

std::string Hex(const Fnv64& hash) { return fmt::format("{:016x}", hash.value()); }

std::string RowsName(const std::string& input) { return input + ".rows"; }

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
  return Hex(hash);
}

Result<std::unique_ptr<HessianFile>> HessianFile::Open(const std::string& path) {
  std::unique_ptr<HessianFile> file(new HessianFile());
  file->path_ = path;
  TQ_ASSIGN_OR_RETURN(file->file_, MappedFile::Open(path));
  TQ_ASSIGN_OR_RETURN(file->tensors_, ParseSafetensors(file->file_->bytes(), path));
  for (const SourceTensor& tensor : file->tensors_.tensors) {
    file->tensor_named_[tensor.name] = &tensor;
  }
  TQ_RETURN_IF_ERROR(file->ReadMetadata());
  TQ_RETURN_IF_ERROR(file->ReadSamples());
  return file;
}

Status HessianFile::ReadMetadata() {
  const auto value = [this](const std::string& key) {
    const auto found = tensors_.metadata.find(key);
    return found == tensors_.metadata.end() ? std::string() : found->second;
  };
  if (!value("format").starts_with("turboquant-calibration-")) {
    return Corrupt(path_ +
                   ": expected a file of `turboquant calibrate`, found another safetensors file");
  }
  if (value("format") != kFormat) {
    return Corrupt(fmt::format("{}: expected {}, found {}: calibrate again with this version",
                               path_, kFormat, value("format")));
  }
  fingerprint_ = value("fingerprint");
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

Status HessianFile::ReadSamples() {
  samples_ = Find(kSamples);
  if (samples_ != nullptr && samples_->dtype == DType::kI32 && samples_->shape.size() == 2 &&
      samples_->shape[0] > 0 && samples_->shape[1] > 0) {
    return Status::Ok();
  }
  return Corrupt(path_ + ": tensor samples: expected I32 [samples, tokens], found " +
                 (samples_ == nullptr ? std::string("none")
                                      : std::string(DTypeName(samples_->dtype)) + " " +
                                            ShapeString(samples_->shape)));
}

const SourceTensor* HessianFile::Find(std::string_view name) const {
  const auto found = tensor_named_.find(name);
  return found == tensor_named_.end() ? nullptr : found->second;
}

int64_t HessianFile::num_tokens() const { return NumElements(samples_->shape); }

std::vector<std::vector<int32_t>> HessianFile::Samples() const {
  const auto length = static_cast<size_t>(samples_->shape[1]);
  std::vector<std::vector<int32_t>> samples(static_cast<size_t>(samples_->shape[0]));
  const std::byte* from = samples_->bytes.data();
  for (std::vector<int32_t>& sample : samples) {
    sample.resize(length);
    std::memcpy(sample.data(), from, length * sizeof(int32_t));
    from += length * sizeof(int32_t);
  }
  return samples;
}

std::string_view HessianFile::InputName(const std::string& matrix_path) const {
  const auto found = tensor_of_.find(matrix_path);
  return found == tensor_of_.end() ? std::string_view() : std::string_view(found->second);
}

Result<int64_t> HessianFile::Rows(const std::string& matrix_path) const {
  const SourceTensor* tensor = Find(RowsName(std::string(InputName(matrix_path))));
  if (tensor == nullptr) return Missing(matrix_path);
  int64_t rows = -1;
  if (tensor->dtype == DType::kI64 && tensor->bytes.size() == sizeof(rows)) {
    std::memcpy(&rows, tensor->bytes.data(), sizeof(rows));
  }
  if (rows >= 0) return rows;
  return Corrupt(path_ + ": tensor " + tensor->name + ": expected a count as I64 [1]");
}

Status HessianFile::CheckFingerprint(const WeightSource& source) const {
  const std::string expected = CheckpointFingerprint(source);
  if (expected == fingerprint_) return Status::Ok();
  return InvalidArgument(
      fmt::format("{}: expected the calibration of {} (fingerprint {}), found that of another "
                  "checkpoint ({}): run `turboquant calibrate --model {}`",
                  path_, source.path(), expected, fingerprint_, source.path()));
}

Status HessianFile::Missing(const std::string& matrix_path) const {
  return NotFound(path_ + ": expected the inputs of " + matrix_path +
                  ", found nothing about it: calibrate again");
}

Result<std::vector<float>> HessianFile::Read(const std::string& matrix_path, int64_t cols) const {
  const SourceTensor* tensor = Find(InputName(matrix_path));
  if (tensor == nullptr) return Missing(matrix_path);
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
                                                             const Samples& samples,
                                                             const std::string& fingerprint,
                                                             const std::string& settings) {
  TQ_CHECK(!samples.empty());
  Fnv64 ids;
  for (const std::span<const int32_t> sample : samples) ids.Add(std::as_bytes(sample));
  Json matrices = Json::object();
  std::vector<SafetensorsWriter::Tensor> tensors = {
      {kSamples,
       DType::kI32,
       {static_cast<int64_t>(samples.size()), static_cast<int64_t>(samples.front().size())}}};
  for (const Input& input : inputs) {
    tensors.push_back({RowsName(input.name()), DType::kI64, {1}});
    tensors.push_back({input.name(), DType::kF32, {input.cols, input.cols}});
    for (const std::string& matrix : input.matrices) matrices[matrix] = input.name();
  }
  std::unique_ptr<HessianWriter> out(new HessianWriter());
  out->path_ = path;
  out->staged_path_ = path + ".partial";
  TQ_ASSIGN_OR_RETURN(out->writer_,
                      SafetensorsWriter::CreateOrContinue(out->staged_path_, std::move(tensors),
                                                          {{"format", kFormat},
                                                           {"fingerprint", fingerprint},
                                                           {"settings", settings},
                                                           {"ids", Hex(ids)},
                                                           {"matrices", matrices.dump()}}));
  if (out->writer_->next() == kSamples) {
    for (const std::span<const int32_t> sample : samples) {
      TQ_RETURN_IF_ERROR(out->writer_->Append(kSamples, std::as_bytes(sample)));
    }
    return out;
  }
  out->Keep();
  const std::string_view next = out->writer_->next();
  while (out->num_done_ < inputs.size() && next != inputs[out->num_done_].name() &&
         next != RowsName(inputs[out->num_done_].name())) {
    ++out->num_done_;
  }
  return out;
}

Status HessianWriter::Append(const Input& input, std::span<const float> sums, int64_t rows) {
  const std::string rows_name = RowsName(input.name());
  if (writer_->next() == rows_name) {  // an interrupted run may have written it
    TQ_RETURN_IF_ERROR(writer_->Append(rows_name, std::as_bytes(std::span(&rows, 1))));
  }
  TQ_RETURN_IF_ERROR(writer_->Append(input.name(), std::as_bytes(sums)));
  ++num_done_;
  return Status::Ok();
}

Status HessianWriter::Finish() {
  TQ_RETURN_IF_ERROR(writer_->Finish());
  if (std::rename(staged_path_.c_str(), path_.c_str()) == 0) return Status::Ok();
  const std::string why = std::strerror(errno);
  std::remove(staged_path_.c_str());
  return IoError(fmt::format("{}: expected to replace it, found: {}", path_, why));
}

}  // namespace tq
