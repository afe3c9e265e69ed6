// StagedFile: one file that is written under a temporary name beside its final path and renamed by
// Commit(). Destroyed without Commit(), it is removed: a failed run leaves nothing that loads.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace tq {

class StagedFile {
 public:
  // The temporary name keeps the suffix of final_path. Creates missing folders above it, not the
  // file. Errors: kInvalidArgument when final_path exists already, kIo.
  static Result<std::unique_ptr<StagedFile>> Create(const std::string& final_path);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  const std::string& path() const { return staging_path_; }
  // fsync, then rename to final_path.
  Status Commit();

 private:
  StagedFile(std::string final_path, std::string staging_path)
      : final_path_(std::move(final_path)), staging_path_(std::move(staging_path)) {}
  std::string final_path_;
  std::string staging_path_;
  bool committed_ = false;
};

}  // namespace tq
