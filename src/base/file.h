// Files: read-only mappings, whole-file reads, and folders that appear complete or not at all.
// Not for networks. All paths are UTF-8. Thread: any; objects are not shared for writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace tq {

// A whole file mapped read-only. The bytes live as long as the object. A file that shrinks while
// mapped is the caller's risk (SIGBUS), as with every mapping.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Tell the kernel that `range` was used and will not be needed soon (bounds memory of a conversion).
  void DropPages(std::span<const std::byte> range) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_;
  size_t size_;
};

// Errors: kNotFound, kIo, kCorrupt when larger than max_bytes.
Result<std::string> ReadTextFile(const std::string& path, size_t max_bytes = size_t{1} << 30);
Status WriteFile(const std::string& path, std::string_view content);

bool FileExists(const std::string& path);
bool IsDirectory(const std::string& path);
// Names (not paths) of the entries, sorted.
Result<std::vector<std::string>> ListDirectory(const std::string& path);

// A folder that is filled under a temporary name beside `final_path` and renamed by Commit().
// Destroyed without Commit(), it removes what it wrote: a failed run leaves nothing that loads.
class StagedDirectory {
 public:
  // Errors: kInvalidArgument when final_path exists already.
  static Result<std::unique_ptr<StagedDirectory>> Create(const std::string& final_path);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::string& path() const { return staging_path_; }
  // fsync, then rename to final_path.
  Status Commit();

 private:
  StagedDirectory(std::string final_path, std::string staging_path)
      : final_path_(std::move(final_path)), staging_path_(std::move(staging_path)) {}
  std::string final_path_;
  std::string staging_path_;
  bool committed_ = false;
};

}  // namespace tq
