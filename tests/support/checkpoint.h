// A checkpoint loaded on a backend, for tests: everything that must outlive the model in one place.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/file.h"
#include "eval/forward_runner.h"
#include "model/model.h"
#include "weights/safetensors.h"
#include "weights/source.h"

namespace tq::test {

struct Loaded {
  std::unique_ptr<WeightSource> source;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<const Model> model;
};

// Errors of any step come back as they are.
Result<Loaded> LoadOn(const std::string& path, const std::string& backend,
                      const BackendOptions& options);

// kv: what ParseKvSettings reads; "": f32 in parity mode, else f16. `exact` is one of these.
KvSettings KvSettingsFor(const Backend& backend, const std::string& kv = "",
                         int64_t min_tokens = 0);

// All logits of `ids`, computed in pieces of `chunk` tokens (0: all at once).
std::vector<float> Logits(const Loaded& loaded, const std::vector<int32_t>& ids, int64_t chunk = 0,
                          std::vector<std::vector<float>>* hidden = nullptr);

// `count` greedy tokens after `prompt`; ids in `never` are not taken.
std::vector<int32_t> Greedy(const Loaded& loaded, std::vector<int32_t> prompt, int count,
                            const std::vector<int32_t>& never,
                            const std::optional<KvSettings>& kv = {});

// One safetensors file of expected values.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path);
  std::vector<float> Floats(const std::string& name) const;
  std::vector<int32_t> Ids(const std::string& name) const;  // int32 or int64
  const SourceTensor* Find(const std::string& name) const;
  const std::vector<SourceTensor>& tensors() const { return file_.tensors; }

 private:
  std::shared_ptr<const MappedFile> mapped_;
  SafetensorsFile file_;
};

// Names of the folders in `folder` (an unpacked archive of tests/data), sorted.
std::vector<std::string> FolderNames(const std::string& folder);

double StandardDeviation(const std::vector<float>& values);
double MaxDifference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace tq::test
