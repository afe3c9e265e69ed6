#include "base/staged_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

namespace tq {

Result<std::unique_ptr<StagedFile>> StagedFile::Create(const std::string& final_path) {
  const std::filesystem::path target(final_path);
  if (!target.has_filename()) {
    return InvalidArgument("\"" + final_path + "\": expected the name of a new file");
  }
  if (FileExists(final_path)) {
    return InvalidArgument(final_path + " exists already: choose another name or remove it");
  }
  const std::filesystem::path parent = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (error) return IoError("cannot create " + parent.string() + ": " + error.message());
  const std::string name = "." + target.stem().string() + ".partial-" + std::to_string(::getpid()) +
                           target.extension().string();
  return std::unique_ptr<StagedFile>(new StagedFile(final_path, (parent / name).string()));
}

StagedFile::~StagedFile() {
  if (!committed_) ::unlink(staging_path_.c_str());
}

Status StagedFile::Commit() {
  const int fd = ::open(staging_path_.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int sync_error = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) return IoError("cannot sync " + staging_path_ + ": " + std::strerror(sync_error));
  if (FileExists(final_path_)) return InvalidArgument(final_path_ + " appeared while writing");
  if (::rename(staging_path_.c_str(), final_path_.c_str()) != 0) {
    return IoError("cannot rename " + staging_path_ + " to " + final_path_ + ": " +
                   std::strerror(errno));
  }
  committed_ = true;
  return Status::Ok();
}

}  // namespace tq
