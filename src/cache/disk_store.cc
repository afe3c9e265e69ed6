#include "cache/disk_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace tq {
namespace {

constexpr std::string_view kPartial = ".partial";
constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kAbandonedNs = 3600 * kNsPerSecond;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t ToNs(const timespec& time) { return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec; }

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

// 0, or what errno said.
int WriteAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

// As many bytes as the file has, up to the size of `bytes`.
Result<size_t> ReadSome(int fd, std::span<std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

// 0700 and 0600 below: prompts are nobody else's business.
Status MakeFolder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (!error && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error && !IsDirectory(path)) error = std::make_error_code(std::errc::not_a_directory);
  if (!error) return Status::Ok();
  return IoError(fmt::format("disk cache: cannot make the folder {}: {}: choose another folder",
                             path, error.message()));
}

bool SameTokens(const DiskRecord& record, const PageTokens& page) {
  return std::equal(record.ids.begin(), record.ids.end(), page.ids.begin(), page.ids.end()) &&
         std::equal(record.extras.begin(), record.extras.end(), page.extras.begin(),
                    page.extras.end(), [&](const TokenExtra& a, const TokenExtra& b) {
                      return a.begin == b.begin - page.begin && a.end == b.end - page.begin &&
                             a.key == b.key;
                    });
}

}  // namespace

Result<std::unique_ptr<DiskStore>> DiskStore::Open(const std::string& folder,
                                                   std::string_view fingerprint,
                                                   int64_t budget_bytes) {
  const DiskKey root = DiskRootKey(fingerprint);
  const std::string own = folder + "/" + DiskKeyHex(root);
  TQ_RETURN_IF_ERROR(MakeFolder(folder));
  TQ_RETURN_IF_ERROR(MakeFolder(own));
  // For people who wonder what a folder is of; nothing reads it.
  const std::string about = own + "/about.txt";
  if (!FileExists(about)) (void)WriteFile(about, std::string(fingerprint) + "\n");
  std::unique_ptr<DiskStore> store(new DiskStore(own, root, budget_bytes));
  store->Refresh();
  return store;
}

bool DiskStore::Has(const DiskKey& key, DiskKind kind) const {
  const std::lock_guard lock(mutex_);
  return index_.Has(key, kind);
}

int64_t DiskStore::total_bytes() const {
  const std::lock_guard lock(mutex_);
  return index_.total_bytes();
}

void DiskStore::Refresh() {
  const std::lock_guard folder_lock(folder_mutex_);
  struct stat info {};
  if (::stat(folder_.c_str(), &info) != 0) info = {};
  const int64_t changed = ToNs(info.st_mtim);
  // Of a folder that changes now, a change in the same tick of its clock may be yet to come.
  if (changed == seen_ns_ && NowNs() - changed > kNsPerSecond) return;
  seen_ns_ = changed;
  std::set<std::string> names;
  if (const auto listed = ListDirectory(folder_); listed.ok()) {
    names.insert(listed->begin(), listed->end());
  }
  std::vector<DiskName> unknown;
  {
    const std::lock_guard lock(mutex_);
    for (const DiskName& name : index_.All()) {
      if (!names.contains(name.FileName())) index_.Remove(name);
    }
    for (const std::string& file : names) {
      const auto name = DiskName::Parse(file);
      if (!name || refused_.contains(file) || index_.Has(name->key, name->kind)) continue;
      unknown.push_back(*name);
    }
  }
  for (const DiskName& name : unknown) {
    if (::stat(PathOf(name).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const std::lock_guard lock(mutex_);
    index_.Add(name, info.st_size, ToNs(info.st_mtim));
  }
  for (const std::string& file : names) {
    if (!file.starts_with('.') || !file.ends_with(kPartial)) continue;
    const std::string path = folder_ + "/" + file;
    const bool abandoned =
        ::stat(path.c_str(), &info) == 0 && NowNs() - ToNs(info.st_mtim) > kAbandonedNs;
    if (abandoned) ::unlink(path.c_str());
  }
}

int64_t DiskStore::RemoveOldest(std::span<const DiskKey> keep) {
  std::vector<DiskName> names;
  int64_t bytes = 0;
  const std::lock_guard folder_lock(folder_mutex_);
  {
    const std::lock_guard lock(mutex_);
    names = index_.Oldest(keep);
    bytes = index_.total_bytes();
    for (const DiskName& name : names) index_.Remove(name);
    bytes -= index_.total_bytes();
  }
  for (const DiskName& name : names) ::unlink(PathOf(name).c_str());
  return bytes;
}

bool DiskStore::MakeRoom(int64_t bytes, std::span<const DiskKey> keep) {
  if (bytes > budget_bytes_) return false;
  // Others write too.
  const auto now = std::chrono::steady_clock::now();
  if (now >= next_refresh_ || total_bytes() + bytes > budget_bytes_) {
    next_refresh_ = now + std::chrono::seconds(2);
    Refresh();
  }
  while (total_bytes() + bytes > budget_bytes_) {
    if (RemoveOldest(keep) == 0) return false;
  }
  return true;
}

int DiskStore::WriteFileOnce(const DiskName& name, std::span<const std::byte> header,
                             std::span<const std::byte> payload) {
  std::random_device random;
  const std::string partial = fmt::format("{}/.{}-{:08x}{:08x}{}", folder_, DiskKeyHex(name.key),
                                          random(), random(), kPartial);
  const auto open = [&] {
    return ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  };
  int fd = open();
  if (fd < 0 && errno == ENOENT && MakeFolder(folder_).ok()) fd = open();  // somebody removed it
  if (fd < 0) return errno;
  int error = WriteAll(fd, header);
  if (error == 0) error = WriteAll(fd, payload);
  // No fsync: after a loss of power the checksums tell what arrived.
  if (::close(fd) != 0 && error == 0) error = errno;
  const std::lock_guard folder_lock(folder_mutex_);
  if (error == 0 && ::rename(partial.c_str(), PathOf(name).c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(partial.c_str());
    return error;
  }
  const std::lock_guard lock(mutex_);
  index_.Add(name, static_cast<int64_t>(header.size() + payload.size()), NowNs());
  refused_.erase(name.FileName());
  return 0;
}

Result<DiskStore::Written> DiskStore::Write(DiskRecord& record,
                                            std::span<const std::byte> payload) {
  const DiskName name{record.key(), record.parent, static_cast<int32_t>(record.ids.size()),
                      record.kind};
  if (Has(name.key, name.kind)) return Written::kYes;
  // A state may come before its page.
  const bool follows = record.parent == root_ || record.kind == DiskKind::kState ||
                       Has(record.parent, DiskKind::kPage);
  if (!follows) return Written::kNo;
  DiskHash hash;
  hash.Add(payload);
  record.root = root_;
  record.payload_bytes = payload.size();
  record.payload_hash = hash.value();
  WriteDiskHeader(record, header_);
  const auto size = static_cast<int64_t>(header_.size() + payload.size());
  const int64_t bytes = DiskIndex::BytesOnDisk(size);
  const std::array keep = {record.parent, name.key};
  if (!MakeRoom(bytes, keep)) return Written::kNo;
  int error = WriteFileOnce(name, header_, payload);
  if (error == ENOSPC || error == EDQUOT) {
    // Others may have filled the disk: give room once.
    int64_t freed = 0;
    for (int64_t more = 1; freed < 2 * bytes && more > 0; freed += more) more = RemoveOldest(keep);
    if (freed > 0) error = WriteFileOnce(name, header_, payload);
  }
  if (error != 0) {
    return IoError(fmt::format("cannot write {}: {}", PathOf(name), std::strerror(error)));
  }
  return Written::kYes;
}

Result<DiskHeader> DiskStore::PeekHeader(const DiskName& name) const {
  const Descriptor fd(::open(PathOf(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return errno == ENOENT ? NotFound("it is gone") : IoError(std::strerror(errno));
  return ReadHeader(fd.get(), name);
}

Result<DiskHeader> DiskStore::ReadHeader(int fd, const DiskName& name) const {
  std::array<std::byte, kMaxDiskHeaderBytes> bytes;
  TQ_ASSIGN_OR_RETURN(const size_t size, ReadSome(fd, bytes));
  TQ_ASSIGN_OR_RETURN(DiskHeader header, ReadDiskHeader(std::span(bytes).first(size)));
  const DiskRecord& record = header.record;
  if (record.root != root_) return Unsupported("the record of another model or setting");
  if (record.kind != name.kind || record.parent != name.parent || record.key() != name.key ||
      static_cast<int32_t>(record.ids.size()) != name.num_tokens) {
    return Corrupt("expected the record that its name tells, found another");
  }
  return header;
}

Status DiskStore::ReadInto(const DiskName& name, const PageTokens& wanted, const Parts& parts,
                           const std::atomic<bool>& cancelled) const {
  const Descriptor fd(::open(PathOf(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return NotFound("it is gone");
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return IoError(std::strerror(errno));
  TQ_ASSIGN_OR_RETURN(const DiskHeader header, ReadHeader(fd.get(), name));
  const DiskRecord& record = header.record;
  const bool same =
      record.ids.size() == wanted.ids.size()
          ? SameTokens(record, wanted)
          : CommonTokens(record.tokens(), wanted) >= static_cast<int64_t>(wanted.ids.size());
  if (!same) return Corrupt("expected other tokens");
  uint64_t expected = 0;
  for (const std::span<std::byte> part : parts) expected += part.size();
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  if (record.payload_bytes != expected || file_bytes != header.size + expected) {
    return Corrupt(fmt::format("expected {} bytes after the header, found {}", expected,
                               static_cast<int64_t>(file_bytes - header.size)));
  }
  if (::lseek(fd.get(), static_cast<off_t>(header.size), SEEK_SET) < 0) {
    return IoError(std::strerror(errno));
  }
  DiskHash hash;
  for (std::span<std::byte> part : parts) {
    while (!part.empty()) {
      if (cancelled.load(std::memory_order_relaxed)) return Cancelled("the request");
      const std::span<std::byte> piece = part.first(std::min(part.size(), size_t{1} << 20));
      TQ_ASSIGN_OR_RETURN(const size_t size, ReadSome(fd.get(), piece));
      if (size < piece.size()) return Corrupt("the file ends too early");
      hash.Add(piece);
      part = part.subspan(size);
    }
  }
  return hash.value() == record.payload_hash ? Status::Ok() : Corrupt("the checksum is wrong");
}

Status DiskStore::Read(const DiskName& name, const PageTokens& wanted, const Parts& parts,
                       const std::atomic<bool>& cancelled) {
  const Status status = ReadInto(name, wanted, parts, cancelled);
  if (status.ok() || status.code() == StatusCode::kCancelled) return status;
  Refuse(name, status);
  return status.WithContext(PathOf(name));
}

void DiskStore::Refuse(const DiskName& name, const Status& why) {
  bool gone = why.code() == StatusCode::kNotFound;
  if (!gone) dropped_files_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard folder_lock(folder_mutex_);
  // Another's file is left alone; broken ones of our own go.
  if (why.code() == StatusCode::kCorrupt) gone = ::unlink(PathOf(name).c_str()) == 0;
  const std::lock_guard lock(mutex_);
  index_.Remove(name);
  if (!gone) refused_.insert(name.FileName());
}

void DiskStore::Touch(const std::vector<DiskName>& names) {
  const int64_t now = NowNs();
  for (const DiskName& name : names) {
    ::utimensat(AT_FDCWD, PathOf(name).c_str(), nullptr, 0);
    const std::lock_guard lock(mutex_);
    index_.Touch(name, now);
  }
}

}  // namespace tq
