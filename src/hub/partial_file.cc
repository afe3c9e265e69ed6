#include "hub/partial_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace tq {
namespace {

Status SystemError(const std::string& path, std::string_view what) {
  return IoError(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

Status WriteAll(int file, const std::string& path, const void* data, size_t size, int64_t offset) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = ::pwrite(file, bytes, size, offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return SystemError(path, "could not write");
    bytes += done;
    size -= static_cast<size_t>(done);
    offset += done;
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<PartialFile>> PartialFile::Open(const std::string& path, int64_t size,
                                                       int64_t chunk_bytes) {
  std::unique_ptr<PartialFile> out(new PartialFile(path, size, chunk_bytes));
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC;
  out->file_ = ::open(out->partial_path().c_str(), kFlags, 0644);
  if (out->file_ < 0) return SystemError(out->partial_path(), "could not open");
  if (::flock(out->file_, LOCK_EX | LOCK_NB) != 0) {
    return Busy(out->partial_path() + ": another process is downloading this file");
  }
  out->chunks_ = ::open(out->chunks_path().c_str(), kFlags, 0644);
  if (out->chunks_ < 0) return SystemError(out->chunks_path(), "could not open");
  out->complete_.assign(static_cast<size_t>((size + chunk_bytes - 1) / chunk_bytes), 0);
  out->ReadChunks();
  // Room is taken as it is filled; the length is there from the start.
  if (::ftruncate(out->file_, size) != 0) return SystemError(out->partial_path(), "could not grow");
  const int64_t head[2] = {size, chunk_bytes};
  TQ_RETURN_IF_ERROR(WriteAll(out->chunks_, out->chunks_path(), head, sizeof(head), 0));
  return out;
}

PartialFile::~PartialFile() {
  if (file_ >= 0) ::close(file_);
  if (chunks_ >= 0) ::close(chunks_);
}

// A record of other sizes counts as none.
void PartialFile::ReadChunks() {
  int64_t head[2] = {};
  std::vector<uint8_t> known(complete_.size());
  const bool same = ::pread(chunks_, head, sizeof(head), 0) == sizeof(head) && head[0] == size_ &&
                    head[1] == chunk_bytes_;
  if (!same) {
    static_cast<void>(::ftruncate(chunks_, 0) == 0);
    return;
  }
  const ssize_t got = ::pread(chunks_, known.data(), known.size(), sizeof(head));
  for (ssize_t i = 0; i < got; ++i) {
    complete_[static_cast<size_t>(i)] = known[static_cast<size_t>(i)] == 1 ? 1 : 0;
  }
}

int64_t PartialFile::chunk_end(int64_t chunk) const {
  return std::min(size_, (chunk + 1) * chunk_bytes_);
}

int64_t PartialFile::bytes_complete() const {
  int64_t bytes = 0;
  for (int64_t i = 0; i < num_chunks(); ++i) {
    if (is_complete(i)) bytes += chunk_end(i) - chunk_begin(i);
  }
  return bytes;
}

Status PartialFile::Write(int64_t offset, std::span<const std::byte> bytes) {
  return WriteAll(file_, partial_path(), bytes.data(), bytes.size(), offset);
}

Status PartialFile::SetComplete(int64_t chunk) {
  complete_[static_cast<size_t>(chunk)] = 1;
  constexpr uint8_t kYes = 1;
  return WriteAll(chunks_, chunks_path(), &kYes, 1,
                  2 * static_cast<int64_t>(sizeof(int64_t)) + chunk);
}

Status PartialFile::Finish(const std::string& hash, ContentHash kind) {
  if (::fsync(file_) != 0) return SystemError(partial_path(), "could not write");
  TQ_ASSIGN_OR_RETURN(const std::string found, HashFile(partial_path(), kind));
  if (found != hash) {
    ::unlink(chunks_path().c_str());
    ::unlink(partial_path().c_str());
    return Corrupt(
        fmt::format("{}: expected the hash {}, found {}: it changed while it was "
                    "downloaded, or was damaged on the way; run the command again",
                    path_, hash, found));
  }
  if (::rename(partial_path().c_str(), path_.c_str()) != 0) {
    return SystemError(path_, "could not be given its name");
  }
  ::unlink(chunks_path().c_str());
  return Status::Ok();
}

}  // namespace tq
