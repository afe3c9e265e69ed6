// FetchHeaders: what a plan needs of a repository, and no weights: config.json, the index, and of
// every weight file the header, by range requests. They become a folder of files with holes: each
// as long as the original, nothing behind its header. Readers of headers see a checkpoint; nothing
// else may be made of it, so the folder goes with the object.
//
// Headers are kept (CACHE/headers/HASH.head, by the content hash that the Hub names), so that a
// second run, or one that was interrupted, asks only for what is new.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "hub/pull.h"
#include "hub/repo_files.h"

namespace tq {

struct HeaderOptions {
  HubOptions hub;
  std::string cache;  // a folder of our own
  // Weight files that are wanted, as --include of `pull`; empty: model*.safetensors, or else the
  // only GGUF file.
  std::vector<std::string> include;
  bool offline = false;  // only what is kept
  int connections = 32;
  int max_retries = 6;
  int64_t retry_ms = 500;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done, int64_t total)> progress;  // files; any thread, one at a time
  // How many bytes the header takes of a file of that name and size which begins with `prefix`;
  // more than there are: fetch them and ask again. Errors: no such file has a header like that.
  std::function<Result<int64_t>(const std::string& name, std::span<const std::byte> prefix,
                                int64_t file_size)>
      header_bytes;
  // Values that a reader of headers looks at all the same: bytes [first, second) of a file that has
  // its header by now, at most a megabyte together. May be null.
  std::function<Result<std::vector<std::pair<int64_t, int64_t>>>(const std::string& path)>
      value_ranges;
};

class RepoHeaders {
 public:
  explicit RepoHeaders(std::string folder) : folder_(std::move(folder)) {}
  ~RepoHeaders();
  RepoHeaders(const RepoHeaders&) = delete;
  RepoHeaders& operator=(const RepoHeaders&) = delete;

  // What to open: the folder, or the GGUF file in it.
  const std::string& path() const { return path_; }
  const std::string& folder() const { return folder_; }

  std::string commit;
  int64_t num_shards = 0;
  int64_t weight_file_bytes = 0;  // of the originals
  int64_t tokenizer_bytes = 0;    // of tokenizer.json and the like, which are not fetched
  int64_t downloaded_bytes = 0;
  std::vector<std::string> missing;  // files that the index names and the repository has not

 private:
  friend class HeaderFetcher;
  std::string folder_;
  std::string path_;
};

// Errors: as Pull, without kCorrupt for contents: they are not checked against their hashes.
Result<std::unique_ptr<RepoHeaders>> FetchHeaders(const RepoId& repo, const HeaderOptions& options);

}  // namespace tq
