#include "hub/repo_headers.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "hub/download.h"
#include "hub/http.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFirstBytes = int64_t{64} << 10;
constexpr int64_t kMaxHeaderBytes = int64_t{256} << 20;
constexpr std::string_view kIndexName = "model.safetensors.index.json";

// Appears complete or not at all.
Status WriteWhole(const std::string& path, std::string_view content) {
  static std::atomic<int> counter{0};  // two paths may have one content
  const std::string part = fmt::format("{}.{}-{}.part", path, ::getpid(), counter++);
  TQ_RETURN_IF_ERROR(WriteFile(part, content));
  std::error_code error;
  fs::rename(part, path, error);
  if (error) return IoError(fmt::format("{}: {}", path, error.message()));
  return Status::Ok();
}

bool IsDocument(const RepoFile& file) {
  constexpr int64_t kMaxTemplateBytes = int64_t{256} << 10;
  return file.path == "config.json" || file.path == kIndexName ||
         (file.path == "chat_template.jinja" && file.size <= kMaxTemplateBytes);
}

// The vocabulary, whichever form it has: what the program makes of it grows with it.
bool IsVocabulary(std::string_view path) {
  return path == "tokenizer.json" || path == "tokenizer.model" || path == "tiktoken.model";
}

// Those of the folder itself, as the reader of such folders takes them.
bool IsShard(std::string_view path) {
  return path.starts_with("model") && path.ends_with(".safetensors") &&
         path.find('/') == std::string_view::npos;
}

PullOptions Retries(const HeaderOptions& options) {
  PullOptions out;
  out.hub = options.hub;
  out.max_retries = options.max_retries;
  out.retry_ms = options.retry_ms;
  out.cancel = options.cancel;
  return out;
}

}  // namespace

RepoHeaders::~RepoHeaders() {
  std::error_code error;
  fs::remove_all(folder_, error);
}

class HeaderFetcher {
 public:
  HeaderFetcher(const RepoId& repo, const HeaderOptions& options)
      : repo_(repo), options_(options), retries_(Retries(options)) {}

  Result<std::unique_ptr<RepoHeaders>> Run() {
    TQ_RETURN_IF_ERROR(MakeFolders());
    TQ_RETURN_IF_ERROR(List());
    TQ_RETURN_IF_ERROR(ChooseFiles());
    TQ_RETURN_IF_ERROR(FetchAll());
    TQ_RETURN_IF_ERROR(FollowIndex());
    return std::move(out_);
  }

 private:
  Status MakeFolders() {
    std::error_code error;
    fs::create_directories(options_.cache + "/headers", error);
    std::string folder = options_.cache + "/plan-XXXXXX";
    if (error || ::mkdtemp(folder.data()) == nullptr) {
      return IoError(options_.cache +
                     ": expected a folder to write headers to: set XDG_CACHE_HOME to another");
    }
    out_ = std::make_unique<RepoHeaders>(folder);
    return Status::Ok();
  }

  Status List() {
    std::string name = repo_.name + "@" + repo_.revision;
    std::replace(name.begin(), name.end(), '/', '=');
    const std::string kept = fmt::format("{}/headers/{}.json", options_.cache, name);
    std::string text;
    if (options_.offline) {
      Result<std::string> read = ReadTextFile(kept, size_t{64} << 20);
      if (!read.ok()) {
        return NotFound(fmt::format(
            "{}: expected what an earlier plan kept (HF_HUB_OFFLINE is set), found nothing: run "
            "it once online",
            repo_.name));
      }
      text = std::move(read).value();
    } else {
      TQ_ASSIGN_OR_RETURN(text, FetchListingText(repo_, retries_));
    }
    TQ_ASSIGN_OR_RETURN(listing_, ParseListing(text, repo_));
    if (!options_.offline) TQ_RETURN_IF_ERROR(WriteWhole(kept, text));
    out_->commit = listing_.commit;
    return Status::Ok();
  }

  Status ChooseFiles() {
    std::string ggufs;
    const RepoFile* only_gguf = nullptr;
    int num_ggufs = 0;
    for (const RepoFile& file : listing_.files) {
      if (IsVocabulary(file.path)) out_->tokenizer_bytes += file.size;
      if (IsDocument(file)) wanted_.push_back(&file);
      if (options_.include.empty() && IsShard(file.path)) wanted_.push_back(&file);
      if (!file.path.ends_with(".gguf")) continue;
      only_gguf = &file;
      if (++num_ggufs <= 8) ggufs += (ggufs.empty() ? "" : ", ") + file.path;
    }
    if (!options_.include.empty()) {
      size_t left_out = 0;
      included_ = SelectFiles(listing_.files, options_.include, {}, &left_out);
      for (const RepoFile& file : included_) {
        if (file.path.ends_with(".gguf") || IsShard(file.path)) wanted_.push_back(&file);
      }
    }
    const auto has_weights = [](const RepoFile* file) { return !IsDocument(*file); };
    if (std::any_of(wanted_.begin(), wanted_.end(), has_weights)) return Status::Ok();
    if (num_ggufs == 1 && options_.include.empty()) {
      wanted_.push_back(only_gguf);
      return Status::Ok();
    }
    return NotFound(fmt::format(
        "{}: expected model*.safetensors{}, found {}{}", repo_.name,
        options_.include.empty() ? ", or one .gguf file" : " or .gguf files that --include names",
        num_ggufs == 0 ? "none" : fmt::format("{} .gguf files ({})", num_ggufs, ggufs),
        num_ggufs == 0 ? "" : ": name one with --include"));
  }

  // Documents whole, weight files as far as their headers go.
  Status FetchAll() {
    std::vector<std::thread> threads;
    const auto count =
        std::min(wanted_.size(), static_cast<size_t>(std::max(1, options_.connections)));
    for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& thread : threads) thread.join();
    return first_error_;
  }

  void Work() {
    HttpClient client;
    while (true) {
      const RepoFile* file = nullptr;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (next_ == wanted_.size() || !first_error_.ok()) return;
        file = wanted_[next_++];
      }
      const Status status = FetchFile(client, *file);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (first_error_.ok()) first_error_ = status;
      if (options_.progress) options_.progress(++num_done_, static_cast<int64_t>(wanted_.size()));
    }
  }

  Status FetchFile(HttpClient& client, const RepoFile& file) {
    const std::string kept = fmt::format("{}/headers/{}.head", options_.cache, file.hash);
    std::string bytes;
    if (Result<std::string> read = ReadTextFile(kept, kMaxHeaderBytes); read.ok()) {
      bytes = std::move(read).value();
    }
    int64_t needed = IsDocument(file) ? file.size
                     : bytes.empty()  ? std::min(file.size, kFirstBytes)
                                      : static_cast<int64_t>(bytes.size());
    bool is_new = false;
    while (true) {
      if (needed > kMaxHeaderBytes || needed > file.size) {
        return Corrupt(fmt::format("{}/{}: expected a header within {} bytes, found one of {}",
                                   repo_.name, file.path, std::min(file.size, kMaxHeaderBytes),
                                   needed));
      }
      if (static_cast<int64_t>(bytes.size()) < needed) {
        TQ_RETURN_IF_ERROR(FetchRange(client, file, 0, needed, bytes));
        is_new = true;
      }
      if (IsDocument(file)) break;
      const auto prefix = std::as_bytes(std::span<const char>(bytes));
      const Result<int64_t> header = options_.header_bytes(file.path, prefix, file.size);
      if (!header.ok()) return header.status().WithContext(repo_.name + "/" + file.path);
      if (*header <= static_cast<int64_t>(bytes.size())) {
        bytes.resize(static_cast<size_t>(*header));
        break;
      }
      needed = *header;
    }
    if (is_new) TQ_RETURN_IF_ERROR(WriteWhole(kept, bytes));
    TQ_RETURN_IF_ERROR(Place(file, bytes));
    return IsDocument(file) ? Status::Ok() : FetchValues(client, file);
  }

  Status FetchValues(HttpClient& client, const RepoFile& file) {
    constexpr int64_t kMaxBytes = int64_t{1} << 20;
    if (!options_.value_ranges) return Status::Ok();
    const std::string path = PathOf(file);
    const auto ranges = options_.value_ranges(path);
    if (!ranges.ok()) return ranges.status().WithContext(repo_.name + "/" + file.path);
    int64_t total = 0;
    for (const auto& [begin, end] : *ranges) {
      if (begin < 0 || end <= begin || end > file.size || (total += end - begin) > kMaxBytes) {
        return Corrupt(fmt::format("{}/{}: expected a few small values, found bytes {} to {}",
                                   repo_.name, file.path, begin, end));
      }
      const std::string kept =
          fmt::format("{}/headers/{}-{}-{}.head", options_.cache, file.hash, begin, end);
      Result<std::string> read = ReadTextFile(kept, static_cast<size_t>(kMaxBytes));
      std::string bytes = read.ok() ? std::move(read).value() : "";
      if (static_cast<int64_t>(bytes.size()) != end - begin) {
        bytes.clear();
        TQ_RETURN_IF_ERROR(FetchRange(client, file, begin, end, bytes));
        TQ_RETURN_IF_ERROR(WriteWhole(kept, bytes));
      }
      std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
      out.seekp(begin);
      out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      if (!out.flush()) return IoError(path + ": cannot be written");
    }
    return Status::Ok();
  }

  std::string PathOf(const RepoFile& file) const {
    return out_->folder_ + "/" + file.path.substr(file.path.rfind('/') + 1);
  }

  // Appends to `bytes` what the file has from first + bytes.size() to end.
  Status FetchRange(HttpClient& client, const RepoFile& file, int64_t first, int64_t end,
                    std::string& bytes) {
    if (options_.offline) {
      return NotFound(fmt::format(
          "{}/{}: expected what an earlier plan kept (HF_HUB_OFFLINE is set), found nothing: run "
          "it once online",
          repo_.name, file.path));
    }
    HttpRequest request;
    request.url = fmt::format("{}/{}/resolve/{}/{}", options_.hub.endpoint, repo_.name,
                              listing_.commit, EscapePath(file.path));
    request.token = options_.hub.token;
    request.cancel = options_.cancel;
    const size_t begin = bytes.size();
    const auto size = static_cast<size_t>(end - first);
    request.body = [&](std::span<const std::byte> more) {
      const size_t room = size - bytes.size();
      bytes.append(reinterpret_cast<const char*>(more.data()), std::min(more.size(), room));
      return more.size() < room;  // a server without ranges would send all
    };
    size_t last = begin;
    const auto made_progress = [&] { return std::exchange(last, bytes.size()) != bytes.size(); };
    while (bytes.size() < size) {
      const size_t before = bytes.size();
      request.range_begin = first + static_cast<int64_t>(before);
      request.range_end = end;
      TQ_ASSIGN_OR_RETURN(const HttpResponse response,
                          GetWithRetries(client, request, retries_, made_progress));
      if (response.status == 200 && request.range_begin > 0) {
        return IoError(request.url + ": the server sends no ranges of files");
      }
      if (bytes.size() == before) {
        return Corrupt(
            fmt::format("{}: expected {} bytes, the server ends at {}: it changed; run "
                        "the command again",
                        request.url, file.size, request.range_begin));
      }
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    out_->downloaded_bytes += static_cast<int64_t>(bytes.size() - begin);
    return Status::Ok();
  }

  Status Place(const RepoFile& file, const std::string& bytes) {
    const std::string path = PathOf(file);
    TQ_RETURN_IF_ERROR(WriteFile(path, bytes));
    if (IsDocument(file)) return Status::Ok();
    std::error_code error;
    fs::resize_file(path, static_cast<uintmax_t>(file.size), error);
    if (error) {
      return IoError(
          fmt::format("{}: no file of {} bytes with a hole: {}: set XDG_CACHE_HOME to "
                      "another disk",
                      path, file.size, error.message()));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ++out_->num_shards;
    out_->weight_file_bytes += file.size;
    if (path.ends_with(".gguf") && (out_->path_.empty() || path < out_->path_)) out_->path_ = path;
    return Status::Ok();
  }

  // Shards of unusual names; and which are not there.
  Status FollowIndex() {
    if (out_->path_.empty()) out_->path_ = out_->folder_;
    const Result<std::string> text =
        ReadTextFile(out_->folder_ + "/" + std::string(kIndexName), size_t{256} << 20);
    if (!text.ok()) return Status::Ok();
    const Result<Json> index = ParseJson(*text, std::string(kIndexName), 16);
    if (!index.ok() || !index->is_object()) return Status::Ok();  // the reader says what is wrong
    const auto map = index->find("weight_map");
    if (map == index->end() || !map->is_object()) return Status::Ok();
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : map->items()) {
      if (shard.is_string()) shards.insert(shard.get<std::string>());
    }
    wanted_.clear();
    next_ = 0;
    num_done_ = 0;
    for (const std::string& shard : shards) {
      if (FileExists(out_->folder_ + "/" + shard.substr(shard.rfind('/') + 1))) continue;
      const auto found = std::find_if(listing_.files.begin(), listing_.files.end(),
                                      [&](const RepoFile& file) { return file.path == shard; });
      if (found == listing_.files.end()) {
        out_->missing.push_back(shard);
      } else if (shard.ends_with(".safetensors")) {
        wanted_.push_back(&*found);
      }
    }
    return FetchAll();
  }

  const RepoId& repo_;
  const HeaderOptions& options_;
  const PullOptions retries_;
  RepoListing listing_;
  std::vector<RepoFile> included_;
  std::vector<const RepoFile*> wanted_;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<RepoHeaders> out_;
  size_t next_ = 0;
  int64_t num_done_ = 0;
  Status first_error_;
};

Result<std::unique_ptr<RepoHeaders>> FetchHeaders(const RepoId& repo,
                                                  const HeaderOptions& options) {
  return HeaderFetcher(repo, options).Run();
}

}  // namespace tq
