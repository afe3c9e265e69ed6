#include "quantize/work_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tq {
namespace {

constexpr const char* kManifest = ".resume";
constexpr int kVersion = 1;

Status Errno(const std::string& what) { return IoError(what + ": " + std::strerror(errno)); }

Status Sync(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Errno("cannot open " + path);
  const bool synced = ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  return synced ? Status::Ok() : IoError("cannot sync " + path + ": " + std::strerror(error));
}

// Length and XXH3 of a file, read in pieces so that a shard takes no memory.
struct FileHash {
  int64_t bytes = 0;
  std::string hash;
  bool operator==(const FileHash&) const = default;
};

Result<FileHash> HashFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Errno("cannot open " + path);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  FileHash out;
  std::vector<char> buffer(size_t{1} << 20);
  ssize_t n = 0;
  do {
    n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) {
      XXH3_64bits_update(&state, buffer.data(), static_cast<size_t>(n));
      out.bytes += n;
    }
  } while (n != 0 && (n > 0 || errno == EINTR));
  const int error = errno;
  ::close(fd);
  if (n < 0) return IoError("cannot read " + path + ": " + std::strerror(error));
  out.hash = fmt::format("{:016x}", XXH3_64bits_digest(&state));
  return out;
}

}  // namespace

Status ConversionStopped(bool resume) {
  return Cancelled(resume ? "conversion stopped: the same command goes on from the last "
                            "finished shard"
                          : "conversion stopped: nothing was written");
}

struct WorkFolder::Manifest {
  std::string fingerprint;
  std::map<std::string, FileHash> files;
};

WorkFolder::WorkFolder() : manifest_(std::make_unique<Manifest>()) {}

WorkFolder::~WorkFolder() {
  if (lock_ >= 0) ::close(lock_);
}

std::string WorkFolder::ManifestPath() const { return path_ + '/' + kManifest; }

Result<std::unique_ptr<WorkFolder>> WorkFolder::Create(const std::string& final_path,
                                                       const Options& options) {
  std::unique_ptr<WorkFolder> folder(new WorkFolder());
  if (options.resume) {
    TQ_RETURN_IF_ERROR(folder->OpenForResume(final_path, options.fingerprint));
  } else {
    TQ_ASSIGN_OR_RETURN(folder->staged_, StagedDirectory::Create(final_path));
    folder->path_ = folder->staged_->path();
  }
  return folder;
}

Status WorkFolder::OpenForResume(const std::string& final_path, const std::string& fingerprint) {
  std::filesystem::path target(final_path);
  if (!target.has_filename()) target = target.parent_path();  // "out/" -> "out"
  if (target.empty()) return InvalidArgument("the output folder's name is empty");
  final_path_ = target.string();
  if (FileExists(final_path_)) {
    return InvalidArgument(final_path_ + " exists already: choose another folder or remove it");
  }
  const std::filesystem::path parent = target.has_parent_path() ? target.parent_path() : ".";
  path_ = (parent / ("." + target.filename().string() + ".partial")).string();
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) return IoError("cannot create " + path_ + ": " + error.message());
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) return Errno("cannot open " + path_);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    return Busy(path_ + ": another conversion to " + final_path_ + " is running");
  }
  if (FileExists(ManifestPath())) return ReadManifest(fingerprint);
  TQ_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path_));
  const auto is_draft = [](const std::string& name) {
    return name == std::string(kManifest) + "~";
  };
  if (!std::all_of(names.begin(), names.end(), is_draft)) {
    return Corrupt(path_ + ": no interrupted conversion (" + kManifest +
                   " is missing): remove that folder");
  }
  manifest_->fingerprint = fingerprint;
  return WriteManifest();
}

Status WorkFolder::ReadManifest(const std::string& fingerprint) {
  const std::string damaged = ManifestPath() + ": damaged: remove " + path_ + " to start anew";
  TQ_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(ManifestPath()));
  const Result<Json> json = ParseJson(text, ManifestPath());
  if (!json.ok()) return Corrupt(damaged);
  try {
    if (json->at("version") != kVersion) return Corrupt(damaged);
    manifest_->fingerprint = json->at("fingerprint").get<std::string>();
    for (const auto& [name, file] : json->at("files").items()) {
      manifest_->files[name] = {file.at("bytes").get<int64_t>(),
                                file.at("xxh3").get<std::string>()};
    }
  } catch (const Json::exception&) {
    return Corrupt(damaged);
  }
  if (manifest_->fingerprint == fingerprint) return Status::Ok();
  return InvalidArgument(path_ +
                         " holds an interrupted conversion of another source or with other "
                         "settings: repeat those, or remove that folder to start anew");
}

Status WorkFolder::WriteManifest() const {
  OrderedJson files = OrderedJson::object();
  for (const auto& [name, file] : manifest_->files) {
    files[name] = {{"bytes", file.bytes}, {"xxh3", file.hash}};
  }
  const OrderedJson json = {
      {"version", kVersion}, {"fingerprint", manifest_->fingerprint}, {"files", files}};
  // Renamed into place: a manifest is never half of one.
  const std::string draft = ManifestPath() + "~";
  TQ_RETURN_IF_ERROR(WriteFile(draft, json.dump(1) + "\n"));
  TQ_RETURN_IF_ERROR(Sync(draft));
  if (::rename(draft.c_str(), ManifestPath().c_str()) != 0) return Errno("cannot rename " + draft);
  return Sync(path_);
}

bool WorkFolder::IsFinished(const std::string& name) const {
  const auto found = manifest_->files.find(name);
  if (found == manifest_->files.end()) return false;
  const Result<FileHash> hash = HashFile(path_ + '/' + name);
  return hash.ok() && *hash == found->second;
}

Status WorkFolder::SetFinished(const std::string& name) {
  if (staged_ != nullptr) return Status::Ok();
  const std::string file = path_ + '/' + name;
  TQ_RETURN_IF_ERROR(Sync(file));
  TQ_ASSIGN_OR_RETURN(manifest_->files[name], HashFile(file));
  return WriteManifest();
}

Status WorkFolder::Commit() {
  if (staged_ != nullptr) return staged_->Commit();
  TQ_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path_));
  for (const std::string& name : names) TQ_RETURN_IF_ERROR(Sync(path_ + '/' + name));
  TQ_RETURN_IF_ERROR(Sync(path_));
  if (FileExists(final_path_)) return InvalidArgument(final_path_ + " appeared while writing");
  if (::rename(path_.c_str(), final_path_.c_str()) != 0) {
    return Errno("cannot rename " + path_ + " to " + final_path_);
  }
  // After the rename, so that a conversion that dies in between need not start anew.
  ::unlink((final_path_ + '/' + kManifest).c_str());
  return Status::Ok();
}

}  // namespace tq
