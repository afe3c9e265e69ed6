#include "support/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace tq::test {

Result<Loaded> LoadOn(const std::string& path, const std::string& backend,
                      const BackendOptions& options) {
  Loaded out;
  TQ_ASSIGN_OR_RETURN(out.source, OpenSource(path));
  TQ_ASSIGN_OR_RETURN(out.backend, MakeBackend(backend, options));
  TQ_ASSIGN_OR_RETURN(out.model, Model::Load(*out.source, *out.backend));
  return out;
}

KvSettings KvSettingsFor(const Backend& backend, const std::string& kv, int64_t min_tokens) {
  KvSettings settings = KvSettingsFor(backend.activations());
  settings.min_tokens = min_tokens;
  if (kv.empty()) return settings;
  const Result<KvSettings> parsed = ParseKvSettings(kv, settings);
  TQ_CHECK(parsed.ok());
  return parsed.value();
}

std::vector<float> Logits(const Loaded& loaded, const std::vector<int32_t>& ids, int64_t chunk,
                          std::vector<std::vector<float>>* hidden) {
  auto runner =
      ForwardRunner::Create(*loaded.model, *loaded.backend, KvSettingsFor(*loaded.backend),
                            static_cast<int64_t>(ids.size()));
  TQ_CHECK(runner.ok());
  std::vector<float> logits;
  TQ_CHECK((*runner)->Append(ids, chunk, &logits, hidden).ok());
  return logits;
}

std::vector<int32_t> Greedy(const Loaded& loaded, std::vector<int32_t> prompt, int count,
                            const std::vector<int32_t>& never,
                            const std::optional<KvSettings>& kv) {
  const auto vocab = static_cast<size_t>(loaded.model->spec().vocab_size);
  auto runner = ForwardRunner::Create(*loaded.model, *loaded.backend,
                                      kv.value_or(KvSettingsFor(*loaded.backend)),
                                      static_cast<int64_t>(prompt.size()) + count);
  TQ_CHECK(runner.ok());
  std::vector<int32_t> out;
  std::vector<float> logits;
  while (static_cast<int>(out.size()) < count) {
    TQ_CHECK((*runner)->Append(prompt, 0, &logits).ok());
    float* last = logits.data() + logits.size() - vocab;
    for (const int32_t id : never) last[id] = -INFINITY;
    out.push_back(static_cast<int32_t>(std::max_element(last, last + vocab) - last));
    prompt = {out.back()};
  }
  return out;
}

TensorFile::TensorFile(const std::string& path) {
  auto mapped = MappedFile::Open(path);
  TQ_CHECK(mapped.ok());
  mapped_ = *mapped;
  auto parsed = ParseSafetensors(mapped_->bytes(), path);
  if (!parsed.ok()) CheckFailed(__FILE__, __LINE__, parsed.status().message().c_str());
  file_ = std::move(*parsed);
}

const SourceTensor* TensorFile::Find(const std::string& name) const {
  for (const SourceTensor& tensor : file_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::vector<float> TensorFile::Floats(const std::string& name) const {
  const SourceTensor* tensor = Find(name);
  TQ_CHECK(tensor != nullptr);
  auto values = ReadFloats(*tensor);
  TQ_CHECK(values.ok());
  return std::move(*values);
}

std::vector<int32_t> TensorFile::Ids(const std::string& name) const {
  const SourceTensor* tensor = Find(name);
  TQ_CHECK(tensor != nullptr);
  std::vector<int32_t> out(static_cast<size_t>(NumElements(tensor->shape)));
  if (tensor->dtype == DType::kI32) {
    std::memcpy(out.data(), tensor->bytes.data(), out.size() * 4);
    return out;
  }
  TQ_CHECK(tensor->dtype == DType::kI64);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t value = 0;
    std::memcpy(&value, tensor->bytes.data() + i * 8, 8);
    out[i] = static_cast<int32_t>(value);
  }
  return out;
}

std::vector<std::string> FolderNames(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

double StandardDeviation(const std::vector<float>& values) {
  double sum = 0;
  double squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / n - sum / n * (sum / n));
}

double MaxDifference(const std::vector<float>& a, const std::vector<float>& b) {
  TQ_CHECK(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

}  // namespace tq::test
