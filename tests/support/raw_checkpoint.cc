#include "support/raw_checkpoint.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "support/checkpoint.h"
#include "weights/safetensors_writer.h"

namespace tq::test {

RawCheckpoint::RawCheckpoint(const std::string& folder) {
  const TensorFile file(folder + "/model.safetensors");
  for (const SourceTensor& tensor : file.tensors()) {
    tensors.push_back(
        {tensor.name, tensor.dtype, tensor.shape, {tensor.bytes.begin(), tensor.bytes.end()}});
  }
  const Result<std::string> text = ReadTextFile(folder + "/config.json");
  TQ_CHECK(text.ok());
  config = OrderedJson::parse(*text);
}

std::string RawCheckpoint::Write(const std::string& name) const {
  const std::string folder = testing::TempDir() + "tq_raw_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::vector<SafetensorsWriter::Tensor> declared;
  for (const RawTensor& tensor : tensors) {
    declared.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  auto writer = SafetensorsWriter::Create(folder + "/model.safetensors", declared, {});
  TQ_CHECK(writer.ok());
  for (const RawTensor& tensor : tensors) {
    TQ_CHECK((*writer)->Append(tensor.name, tensor.bytes).ok());
  }
  TQ_CHECK((*writer)->Finish().ok());
  TQ_CHECK(WriteFile(folder + "/config.json", config.dump()).ok());
  return folder;
}

RawTensor* RawCheckpoint::Find(const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const RawTensor& tensor) { return tensor.name == name; });
  return found != tensors.end() ? &*found : nullptr;
}

void RawCheckpoint::Add(const std::string& name, const Shape& shape) {
  const auto bytes = static_cast<size_t>(NumElements(shape)) * 2;
  tensors.push_back({name, DType::kBf16, shape, std::vector<std::byte>(bytes)});
}

void RawCheckpoint::Rename(const std::function<std::string(std::string)>& new_name) {
  for (RawTensor& tensor : tensors) tensor.name = new_name(tensor.name);
}

void RawCheckpoint::Stack(const std::vector<std::string>& names, const std::string& stacked) {
  RawTensor out;
  out.name = stacked;
  for (const std::string& name : names) {
    const RawTensor* part = Find(name);
    TQ_CHECK(part != nullptr);
    out.dtype = part->dtype;
    out.shape = part->shape;
    out.bytes.insert(out.bytes.end(), part->bytes.begin(), part->bytes.end());
  }
  out.shape.insert(out.shape.begin(), static_cast<int64_t>(names.size()));
  std::erase_if(tensors, [&](const RawTensor& tensor) {
    return std::find(names.begin(), names.end(), tensor.name) != names.end();
  });
  tensors.push_back(std::move(out));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace tq::test
