#include "quantize/rounded_store.h"

#include "weights/safetensors_writer.h"

namespace tq {
namespace {

constexpr std::string_view kWords = ".weight";
constexpr std::string_view kScales = ".scales";

}  // namespace

Status RoundedStore::Write(const std::string& file,
                           const std::map<std::string, RoundedMatrix>& matrices) {
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const auto& [path, matrix] : matrices) {
    tensors.push_back(
        {path + std::string(kWords), DType::kU32, {static_cast<int64_t>(matrix.words.size())}});
    tensors.push_back(
        {path + std::string(kScales), DType::kF16, {static_cast<int64_t>(matrix.scales.size())}});
  }
  TQ_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(file, tensors, {}));
  for (const auto& [path, matrix] : matrices) {
    TQ_RETURN_IF_ERROR(
        writer->Append(path + std::string(kWords), std::as_bytes(std::span(matrix.words))));
    TQ_RETURN_IF_ERROR(
        writer->Append(path + std::string(kScales), std::as_bytes(std::span(matrix.scales))));
  }
  return writer->Finish();
}

Status RoundedStore::Open(const std::string& file) {
  File opened;
  TQ_ASSIGN_OR_RETURN(opened.mapped, MappedFile::Open(file));
  TQ_ASSIGN_OR_RETURN(opened.tensors, ParseSafetensors(opened.mapped->bytes(), file));
  for (const SourceTensor& tensor : opened.tensors.tensors) {
    const std::string_view name = tensor.name;
    for (const std::string_view part : {kWords, kScales}) {
      if (!name.ends_with(part)) continue;
      View& view = views_[std::string(name.substr(0, name.size() - part.size()))];
      (part == kWords ? view.words : view.scales) = tensor.bytes;
    }
  }
  files_.push_back(std::move(opened));
  return Status::Ok();
}

const RoundedStore::View* RoundedStore::Find(const std::string& path) const {
  const auto found = views_.find(path);
  return found == views_.end() ? nullptr : &found->second;
}

}  // namespace tq
