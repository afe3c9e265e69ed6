#include "hub/download.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace tq {
namespace {

using Milliseconds = std::chrono::milliseconds;

bool IsCancelled(const PullOptions& options) {
  return options.cancel != nullptr && options.cancel->load();
}

Status StatusOf(const HttpResponse& response, const std::string& url) {
  switch (response.status) {
    case 401:
    case 403:
      return InvalidArgument(
          fmt::format("{}: access refused ({}): a private or gated repository; accept its terms on "
                      "its page and "
                      "set HF_TOKEN, or write the name correctly",
                      url, response.status));
    case 404:
      return NotFound(fmt::format("{}: not found (404): check the name and the revision", url));
    case 416:
      return Corrupt(
          fmt::format("{}: shorter than its repository says: it changed; run the command "
                      "again",
                      url));
    default:
      return IoError(fmt::format("{}: HTTP status {}", url, response.status));
  }
}

bool IsWorthARetry(int status) { return status == 429 || status == 408 || status >= 500; }

int64_t WaitTime(const HttpResponse* response, const PullOptions& options, int attempt) {
  constexpr int64_t kLongest = 30'000;
  if (response != nullptr) {
    const auto after = response->headers.find("retry-after");
    if (after != response->headers.end()) {
      const double seconds = std::atof(after->second.c_str());
      if (seconds > 0 && seconds < 600) return static_cast<int64_t>(seconds * 1000);
    }
  }
  return std::min(kLongest, options.retry_ms << std::min(attempt, 10));
}

// False when cancelled.
bool Wait(int64_t ms, const PullOptions& options) {
  const auto end = std::chrono::steady_clock::now() + Milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
    if (IsCancelled(options)) return false;
    std::this_thread::sleep_for(Milliseconds(std::min<int64_t>(ms, 50)));
  }
  return true;
}

class Downloader {
 public:
  Downloader(std::vector<Download>& downloads, const PullOptions& options)
      : downloads_(downloads), options_(options) {
    for (size_t i = 0; i < downloads.size(); ++i) {
      const PartialFile& partial = *downloads[i].partial;
      chunks_left_.push_back(0);
      for (int64_t chunk = 0; chunk < partial.num_chunks(); ++chunk) {
        if (partial.is_complete(chunk)) continue;
        work_.push_back({i, chunk});
        ++chunks_left_.back();
      }
      // Complete, but not yet named: an earlier run was stopped just then. Also an empty file.
      if (chunks_left_.back() == 0) work_.push_back({i, -1});
    }
  }

  Status Run(int64_t missing_bytes) {
    const auto count = std::min<size_t>(work_.size(), static_cast<size_t>(options_.connections));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { Work(); });
    std::unique_lock<std::mutex> lock(mutex_);
    while (num_ended_ < count) {
      ended_.wait_for(lock, Milliseconds(100));
      if (options_.progress) options_.progress(received_.load(), missing_bytes);
    }
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    return first_error_;
  }

  int64_t received() const { return received_.load(); }

 private:
  struct Chunk {
    size_t download;
    int64_t chunk;
  };

  void Work() {
    HttpClient client;
    Status status;
    while (status.ok()) {
      std::unique_lock<std::mutex> lock(mutex_);
      if (next_ == work_.size() || !first_error_.ok()) break;
      const Chunk chunk = work_[next_++];
      lock.unlock();
      status = IsCancelled(options_) ? Cancelled("") : Fetch(client, chunk);
      if (status.code() == StatusCode::kCancelled) {
        status = Cancelled("the download was stopped: the same command goes on from here");
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_error_.ok()) first_error_ = status;
    ++num_ended_;
    ended_.notify_all();
  }

  Status Fetch(HttpClient& client, const Chunk& work) {
    Download& download = downloads_[work.download];
    if (work.chunk >= 0) {
      TQ_RETURN_IF_ERROR(FetchChunk(client, download, work.chunk));
      const std::lock_guard<std::mutex> lock(mutex_);
      TQ_RETURN_IF_ERROR(download.partial->SetComplete(work.chunk));
      if (--chunks_left_[work.download] > 0) return Status::Ok();
    }
    return download.partial->Finish(download.file->hash, download.file->hash_kind);
  }

  Status FetchChunk(HttpClient& client, Download& download, int64_t chunk) {
    PartialFile& partial = *download.partial;
    int64_t at = partial.chunk_begin(chunk);
    const int64_t end = partial.chunk_end(chunk);
    const bool whole_file = at == 0 && end == download.file->size;
    Status written;
    HttpRequest request;
    request.url = download.url;
    request.token = options_.hub.token;
    request.cancel = options_.cancel;
    request.body = [&](std::span<const std::byte> bytes) {
      const auto room = static_cast<size_t>(end - at);
      if (bytes.size() > room) written = Corrupt(download.url + ": more bytes than asked for");
      if (written.ok()) written = partial.Write(at, bytes);
      if (!written.ok()) return false;
      at += static_cast<int64_t>(bytes.size());
      received_ += static_cast<int64_t>(bytes.size());
      return true;
    };
    int64_t last = at;
    const auto made_progress = [&] { return std::exchange(last, at) != at; };
    while (at < end) {
      request.range_begin = at;
      request.range_end = end;
      TQ_ASSIGN_OR_RETURN(const HttpResponse response,
                          GetWithRetries(client, request, options_, made_progress));
      TQ_RETURN_IF_ERROR(written);
      // A server without ranges sends everything, from the start.
      if (response.status == 200 && !(whole_file && request.range_begin == 0)) {
        return IoError(download.url + ": the server sends no ranges of files");
      }
      if (at == request.range_begin) {
        return Corrupt(
            fmt::format("{}: expected {} bytes, the server ends at {}: it changed; run "
                        "the command again",
                        download.url, download.file->size, at));
      }
    }
    return Status::Ok();
  }

  std::vector<Download>& downloads_;
  const PullOptions& options_;
  std::vector<Chunk> work_;
  std::atomic<int64_t> received_{0};
  std::mutex mutex_;  // guards what follows, and the record of complete chunks
  std::condition_variable ended_;
  std::vector<int64_t> chunks_left_;
  size_t next_ = 0;
  size_t num_ended_ = 0;
  Status first_error_;
};

}  // namespace

Result<HttpResponse> GetWithRetries(HttpClient& client, HttpRequest& request,
                                    const PullOptions& options,
                                    const std::function<bool()>& made_progress) {
  for (int attempt = 0;; ++attempt) {
    const Result<HttpResponse> response = client.Get(request);
    if (response.ok() && (response->status == 200 || response->status == 206)) return response;
    if (!response.ok() && response.status().code() == StatusCode::kCancelled) return response;
    if (made_progress()) {
      if (!response.ok()) return HttpResponse{206, {}};  // the caller asks for the rest
      attempt = 0;
    }
    const bool retry = !response.ok() || IsWorthARetry(response->status);
    if (!retry) return StatusOf(*response, request.url);
    if (attempt >= options.max_retries) {
      return response.ok() ? StatusOf(*response, request.url) : response.status();
    }
    if (!Wait(WaitTime(response.ok() ? &*response : nullptr, options, attempt), options)) {
      return Cancelled("the download was stopped: the same command goes on from here");
    }
  }
}

Status DownloadAll(std::vector<Download>& downloads, const PullOptions& options,
                   int64_t missing_bytes, int64_t* downloaded_bytes) {
  Downloader downloader(downloads, options);
  const Status status = downloader.Run(missing_bytes);
  *downloaded_bytes = downloader.received();
  return status;
}

Result<std::string> FetchListingText(const RepoId& repo, const PullOptions& options) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  HttpClient client;
  std::string text;
  HttpRequest request;
  request.url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", options.hub.endpoint,
                            repo.name, EscapePath(repo.revision));
  request.token = options.hub.token;
  request.cancel = options.cancel;
  request.body = [&text](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.size() <= kMaxBytes;
  };
  const auto start_anew = [&text] {
    text.clear();
    return false;
  };
  TQ_RETURN_IF_ERROR(GetWithRetries(client, request, options, start_anew).status());
  return text;
}

}  // namespace tq
