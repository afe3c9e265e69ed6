// PartialFile: a file on its way from the network, in chunks that arrive in any order. What is
// there survives the process: PATH.partial holds the bytes, PATH.partial.chunks which chunks are
// complete.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/content_hash.h"

namespace tq {

class PartialFile {
 public:
  // Goes on where an earlier run stopped. Errors: kIo, kBusy (another process is at it).
  static Result<std::unique_ptr<PartialFile>> Open(const std::string& path, int64_t size,
                                                   int64_t chunk_bytes);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  int64_t num_chunks() const { return static_cast<int64_t>(complete_.size()); }
  bool is_complete(int64_t chunk) const { return complete_[static_cast<size_t>(chunk)] != 0; }
  int64_t chunk_begin(int64_t chunk) const { return chunk * chunk_bytes_; }
  int64_t chunk_end(int64_t chunk) const;
  int64_t bytes_complete() const;

  // Any thread, each chunk by one. Errors: kIo (a full disk).
  Status Write(int64_t offset, std::span<const std::byte> bytes);
  Status SetComplete(int64_t chunk);

  // All chunks are there: checks the hash and gives the file its name. A wrong hash throws all of
  // it away. Errors: kCorrupt, kIo.
  Status Finish(const std::string& hash, ContentHash kind);

 private:
  PartialFile(std::string path, int64_t size, int64_t chunk_bytes)
      : path_(std::move(path)), size_(size), chunk_bytes_(chunk_bytes) {}
  std::string partial_path() const { return path_ + ".partial"; }
  std::string chunks_path() const { return path_ + ".partial.chunks"; }
  void ReadChunks();

  std::string path_;
  int64_t size_;
  int64_t chunk_bytes_;
  int file_ = -1;
  int chunks_ = -1;
  std::vector<uint8_t> complete_;
};

}  // namespace tq
