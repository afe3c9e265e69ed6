// Pull: a repository of the Hugging Face Hub into its usual cache (repo_id.h). Several connections,
// each file in ranges; an interrupted download goes on where it stopped; every file is checked
// against the hash that the Hub names.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/repo_id.h"

namespace tq {

struct HubOptions {
  std::string endpoint = "https://huggingface.co";
  std::string cache;  // folder of all repositories
  std::string token;  // empty: none
};

struct PullOptions {
  HubOptions hub;
  std::vector<std::string> include;  // patterns, see SelectFiles
  std::vector<std::string> exclude;
  int connections = 8;
  int64_t chunk_bytes = int64_t{64} << 20;
  int max_retries = 6;     // in a row without a byte between
  int64_t retry_ms = 500;  // doubles, up to half a minute; Retry-After wins
  const std::atomic<bool>* cancel = nullptr;
  // Bytes of what was still to be downloaded: the speed says how long the rest takes. The caller's
  // thread.
  std::function<void(int64_t done, int64_t total)> progress;
};

struct PullReport {
  std::string commit;
  std::string snapshot;  // the folder to give to --model
  int64_t num_files = 0;
  int64_t total_bytes = 0;
  int64_t downloaded_bytes = 0;  // by this call
  int64_t left_out = 0;          // files of other programs
  double seconds = 0;
};

// Errors: kNotFound (no such repository, revision or matching file), kInvalidArgument (private or
// gated: what to do is in the message), kIo (network, or no room: checked before the first byte),
// kCorrupt (a wrong hash), kCancelled. What is complete stays for the next call.
Result<PullReport> Pull(const RepoId& repo, const PullOptions& options);

}  // namespace tq
