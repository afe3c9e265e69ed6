#include "base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapped_pages.h"

namespace tq {
namespace {

Status ErrnoStatus(const std::string& what, int error) {
  const std::string message = what + ": " + std::strerror(error);
  return error == ENOENT || error == ENOTDIR ? NotFound(message) : IoError(message);
}

// Closes on every path out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// The open files, so that an address leads to its file.
struct OpenFiles {
  std::mutex mutex;
  std::vector<const MappedFile*> files;
};
OpenFiles& AllOpenFiles() {
  static auto* const files = new OpenFiles;  // never destroyed: files may outlive main
  return *files;
}

Status SyncPath(const std::string& path, int flags) {
  const Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return ErrnoStatus("cannot sync " + path, errno);
  return Status::Ok();
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus("cannot open " + path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot stat " + path, errno);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path + ": expected a regular file");
  const auto size = static_cast<size_t>(info.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (memory == MAP_FAILED) return ErrnoStatus("cannot map " + path, errno);
    data = static_cast<const std::byte*>(memory);
  }
  std::shared_ptr<const MappedFile> file(new MappedFile(path, data, size));
  OpenFiles& all = AllOpenFiles();
  const std::lock_guard lock(all.mutex);
  all.files.push_back(file.get());
  return file;
}

MappedFile::~MappedFile() {
  {
    OpenFiles& all = AllOpenFiles();
    const std::lock_guard lock(all.mutex);
    std::erase(all.files, this);
  }
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::DropPages(std::span<const std::byte> range) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  // A touched page brings its neighbours along (fault-around): they go too. Who still wants one
  // gets it from the page cache.
  constexpr uintptr_t kAround = 64 << 10;
  const auto first = reinterpret_cast<uintptr_t>(data_);
  const auto at = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t begin = std::max(first, at - std::min(at, kAround)) / page * page;
  const uintptr_t end =
      (std::min(first + size_, at + range.size() + kAround) + page - 1) / page * page;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void DropMappedPages(std::span<const std::byte> bytes) {
  OpenFiles& all = AllOpenFiles();
  const std::lock_guard lock(all.mutex);
  for (const MappedFile* file : all.files) {
    const std::span<const std::byte> whole = file->bytes();
    if (bytes.data() < whole.data() || bytes.data() >= whole.data() + whole.size()) continue;
    return file->DropPages(bytes);
  }
}

Result<std::string> ReadTextFile(const std::string& path, size_t max_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus("cannot open " + path, errno);
  std::string out;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read " + path, errno);
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
    if (out.size() > max_bytes) {
      return Corrupt(path + ": expected at most " + std::to_string(max_bytes) +
                     " bytes, found more");
    }
  }
}

Status WriteFile(const std::string& path, std::string_view content) {
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) return ErrnoStatus("cannot create " + path, errno);
  while (!content.empty()) {
    const ssize_t n = ::write(fd.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write " + path, errno);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

bool FileExists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return ErrnoStatus("cannot list " + path, errno);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::unique_ptr<StagedDirectory>> StagedDirectory::Create(const std::string& final_path) {
  std::filesystem::path target(final_path);
  if (!target.has_filename()) target = target.parent_path();  // "out/" -> "out"
  if (target.empty()) return InvalidArgument("the output folder's name is empty");
  if (FileExists(target.string())) {
    return InvalidArgument(target.string() + " exists already: choose another folder or remove it");
  }
  const std::filesystem::path parent = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (error) return IoError("cannot create " + parent.string() + ": " + error.message());
  const std::string staging =
      (parent / ("." + target.filename().string() + ".partial-" + std::to_string(::getpid())))
          .string();
  std::filesystem::remove_all(staging, error);
  if (::mkdir(staging.c_str(), 0755) != 0) return ErrnoStatus("cannot create " + staging, errno);
  return std::unique_ptr<StagedDirectory>(new StagedDirectory(target.string(), staging));
}

StagedDirectory::~StagedDirectory() {
  if (committed_) return;
  std::error_code error;
  std::filesystem::remove_all(staging_path_, error);
}

Status StagedDirectory::Commit() {
  TQ_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(staging_path_));
  for (const std::string& name : names) {
    TQ_RETURN_IF_ERROR(SyncPath(staging_path_ + "/" + name, O_RDONLY));
  }
  TQ_RETURN_IF_ERROR(SyncPath(staging_path_, O_RDONLY | O_DIRECTORY));
  if (FileExists(final_path_)) return InvalidArgument(final_path_ + " appeared while writing");
  if (::rename(staging_path_.c_str(), final_path_.c_str()) != 0) {
    return ErrnoStatus("cannot rename " + staging_path_ + " to " + final_path_, errno);
  }
  committed_ = true;
  return Status::Ok();
}

}  // namespace tq
