#include "apps/plan_source.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "api/chat_check.h"
#include "apps/hub_flags.h"
#include "apps/missing_shards.h"
#include "base/file.h"
#include "hub/packaged_model.h"
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

std::string LargestWeights(const std::string& folder) {
  std::string largest;
  const Result<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) return largest;
  for (const std::string& name : *names) {
    const std::string path = folder + "/" + name;
    if (!name.ends_with(".safetensors")) continue;
    if (largest.empty() || SizeOf(path) > SizeOf(largest)) largest = path;
  }
  return largest;
}

Status OpenLocal(const std::string& path, PlanSource& out) {
  out.missing = IsDirectory(path) ? MissingShards(path) : "";
  if (!out.missing.empty()) return Status::Ok();
  TQ_ASSIGN_OR_RETURN(out.source, OpenSource(path));
  out.tokenizer_bytes = IsDirectory(path) ? VocabularyBytes(path) : GgufVocabularyBytes(path);
  out.largest_file = IsDirectory(path) ? LargestWeights(path) : path;
  return Status::Ok();
}

Status OpenRemote(const RepoId& repo, const std::vector<std::string>& include,
                  const Console& console, const std::atomic<bool>& cancel, PlanSource& out) {
  HeaderOptions options;
  options.hub = HubOptionsFromEnvironment();
  options.cache = OwnCacheFolder();
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
    out.missing =
        MissingText(missing, missing.size() + static_cast<size_t>(out.headers->num_shards)) +
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
  const PackagedModel* packaged = FileExists(model) ? nullptr : FindPackagedModel(model);
  if (packaged != nullptr) {
    TQ_ASSIGN_OR_RETURN(const std::string file, FindPackagedFile(OwnCacheFolder(), *packaged));
    TQ_RETURN_IF_ERROR(OpenLocal(file, out));
  } else if (LooksLikePath(model)) {
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
    const Status chat = CheckChatTemplate(*out.source);
    if (!chat.ok()) out.template_error = out.Named(chat).message();
    for (const SourceTensor& tensor : out.source->tensors()) {
      out.stored_bytes += static_cast<int64_t>(tensor.bytes.size());
    }
  }
  return out;
}

}  // namespace tq
