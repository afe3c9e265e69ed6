#include "apps/plan_source.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/hub_flags.h"
#include "base/file.h"
#include "base/json.h"
#include "hub/repo_id.h"
#include "weights/header_bytes.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

// As if the vocabulary in the header were a tokenizer.json, which is about twice as long.
int64_t GgufVocabularyBytes(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return 0;
  const std::span<const std::byte> bytes = (*file)->bytes();
  const auto header = HeaderBytes(path, bytes, static_cast<int64_t>(bytes.size()));
  return header.ok() ? 2 * *header : 0;
}

// A path, whether it exists or not: a typo in one must not become a question to the Hub.
bool LooksLikePath(const std::string& model) {
  const std::string name = model.substr(0, model.find('@'));
  return model.starts_with('/') || model.starts_with('.') || model.starts_with('~') ||
         std::count(name.begin(), name.end(), '/') != 1 || model.ends_with(".gguf") ||
         FileExists(model);
}

int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

int64_t VocabularyBytes(const std::string& folder) {
  int64_t bytes = 0;
  for (const char* name : {"/tokenizer.json", "/tokenizer.model", "/tiktoken.model"}) {
    bytes += SizeOf(folder + name);
  }
  return bytes;
}

std::string List(const std::vector<std::string>& names, size_t total) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return fmt::format("{} of {} files are missing: {}{}", names.size(), total, text,
                     names.size() > kShown ? ", ..." : "");
}

// Files that the index names and the folder has not, and how many bytes they would be.
std::string MissingShards(const std::string& folder) {
  const std::string file = folder + "/model.safetensors.index.json";
  const Result<std::string> text = ReadTextFile(file);
  if (!text.ok()) return "";
  const Result<Json> index = ParseJson(*text, file, 16);
  if (!index.ok() || !index->is_object()) return "";
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object()) return "";
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (shard.is_string()) shards.insert(shard.get<std::string>());
  }
  std::vector<std::string> missing;
  int64_t present = 0;
  for (const std::string& shard : shards) {
    if (FileExists(folder + "/" + shard)) {
      present += SizeOf(folder + "/" + shard);
    } else {
      missing.push_back(shard);
    }
  }
  if (missing.empty()) return "";
  std::string out = List(missing, shards.size());
  const auto metadata = index->find("metadata");
  if (metadata == index->end() || !metadata->is_object()) return out;
  const auto total = metadata->find("total_size");
  if (total != metadata->end() && total->is_number_unsigned() && total->get<int64_t>() > present) {
    out +=
        fmt::format("; {} of {}", HumanBytes(static_cast<double>(total->get<int64_t>() - present)),
                    HumanBytes(static_cast<double>(total->get<int64_t>())));
  }
  return out;
}

Status OpenLocal(const std::string& path, PlanSource& out) {
  out.missing = IsDirectory(path) ? MissingShards(path) : "";
  if (!out.missing.empty()) return Status::Ok();
  TQ_ASSIGN_OR_RETURN(out.source, OpenSource(path));
  out.tokenizer_bytes = IsDirectory(path) ? VocabularyBytes(path) : GgufVocabularyBytes(path);
  return Status::Ok();
}

std::string OwnCache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/turboquant";
  const char* home = std::getenv("HOME");
  return (home != nullptr ? std::string(home) : fs::temp_directory_path().string()) +
         "/.cache/turboquant";
}

Status OpenRemote(const RepoId& repo, const std::vector<std::string>& include,
                  const Console& console, const std::atomic<bool>& cancel, PlanSource& out) {
  HeaderOptions options;
  options.hub = HubOptionsFromEnvironment();
  options.cache = OwnCache();
  options.include = include;
  options.offline = IsHubOffline();
  options.cancel = &cancel;
  options.header_bytes = HeaderBytes;
  options.value_ranges = DescribingValues;
  ProgressBar bar(console, "reading headers", HumanCount, " files");
  options.progress = [&bar](int64_t done, int64_t total) { bar.Update(done, total); };
  Result<std::unique_ptr<RepoHeaders>> headers = FetchHeaders(repo, options);
  bar.Erase();
  if (!headers.ok()) return headers.status();
  out.is_remote = true;
  out.headers = std::move(headers).value();
  out.tokenizer_bytes = out.headers->tokenizer_bytes;
  if (!out.headers->missing.empty()) {
    const auto& missing = out.headers->missing;
    out.missing = List(missing, missing.size() + static_cast<size_t>(out.headers->num_shards)) +
                  " (its index names them)";
    return Status::Ok();
  }
  Result<std::unique_ptr<WeightSource>> source = OpenSource(out.headers->path());
  if (!source.ok()) return out.Named(source.status());
  out.source = std::move(source).value();
  if (out.source->container() == "gguf") {
    out.tokenizer_bytes = GgufVocabularyBytes(out.headers->path());
  }
  return Status::Ok();
}

}  // namespace

Status PlanSource::Named(const Status& status) const {
  if (status.ok() || headers == nullptr) return status;
  std::string text = status.message();
  const std::string& folder = headers->folder();
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
    text.replace(at, folder.size(), model);
  }
  return {status.code(), text};
}

Result<PlanSource> OpenPlanSource(const std::string& model, const std::vector<std::string>& include,
                                  const Console& console, const std::atomic<bool>& cancel) {
  PlanSource out;
  out.model = model;
  if (LooksLikePath(model)) {
    if (!FileExists(model)) {
      return NotFound(
          fmt::format("{}: expected a folder in Hugging Face layout, a .gguf file, or "
                      "ORG/NAME of a repository, found no such path",
                      model));
    }
    TQ_RETURN_IF_ERROR(OpenLocal(model, out));
  } else {
    TQ_ASSIGN_OR_RETURN(const RepoId repo, ParseRepoId(model));
    const auto snapshot = FindSnapshot(HubOptionsFromEnvironment().cache, repo);
    // One with --include may have some files only: then the repository is asked.
    if (!snapshot.ok() || !OpenLocal(*snapshot, out).ok() || out.source == nullptr) {
      out = {};
      out.model = model;
      TQ_RETURN_IF_ERROR(OpenRemote(repo, include, console, cancel, out));
    }
  }
  if (out.source != nullptr) {
    for (const SourceTensor& tensor : out.source->tensors()) {
      out.stored_bytes += static_cast<int64_t>(tensor.bytes.size());
    }
  }
  return out;
}

}  // namespace tq
