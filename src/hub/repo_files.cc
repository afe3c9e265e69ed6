#include "hub/repo_files.h"

#include <algorithm>

#include <fmt/format.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

bool IsHex(std::string_view text, size_t size) {
  return text.size() == size &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// No way out of the snapshot's folder.
bool IsSafePath(std::string_view path) {
  if (path.empty() || path.size() > 1024 || path.front() == '/') return false;
  if (path.find('\\') != std::string_view::npos) return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    for (const char c : part) {
      if (static_cast<unsigned char>(c) < 0x20) return false;
    }
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

Result<RepoFile> ParseFile(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  RepoFile file;
  file.path = reader.String("rfilename", "");
  file.size = reader.RequiredInt("size", 0, int64_t{1} << 50);
  file.hash = reader.String("blobId", "");
  const Json* lfs = reader.Raw("lfs");
  TQ_RETURN_IF_ERROR(reader.status());
  if (lfs != nullptr && lfs->is_object()) {
    ConfigReader large(*lfs, where + ".lfs");
    file.hash = large.String("sha256", "");
    file.size = large.Int("size", file.size);
    file.hash_kind = ContentHash::kSha256;
    TQ_RETURN_IF_ERROR(large.status());
  }
  const size_t digits = file.hash_kind == ContentHash::kSha256 ? 64 : 40;
  if (!IsSafePath(file.path) || !IsHex(file.hash, digits)) {
    return Corrupt(
        fmt::format("{}: expected a relative path and a hash of {} digits, found \"{}\" "
                    "and \"{}\"",
                    where, digits, file.path, file.hash));
  }
  return file;
}

bool Matches(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
  });
}

}  // namespace

Result<RepoListing> ParseListing(std::string_view json, const RepoId& repo) {
  const std::string where = "the list of " + repo.name;
  TQ_ASSIGN_OR_RETURN(const Json document, ParseJson(json, where));
  if (!document.is_object()) return Corrupt(where + ": expected an object");
  ConfigReader reader(document, where);
  RepoListing listing;
  listing.commit = reader.String("sha", "");
  const Json* files = reader.Raw("siblings");
  TQ_RETURN_IF_ERROR(reader.status());
  if (!IsHex(listing.commit, 40) || files == nullptr || !files->is_array()) {
    return Corrupt(where + ": expected \"sha\" and \"siblings\", found neither or only one");
  }
  for (const Json& entry : *files) {
    if (!entry.is_object()) return Corrupt(where + ": siblings: expected objects");
    TQ_ASSIGN_OR_RETURN(RepoFile file, ParseFile(entry, where));
    listing.files.push_back(std::move(file));
  }
  return listing;
}

std::vector<RepoFile> SelectFiles(const std::vector<RepoFile>& files,
                                  const std::vector<std::string>& include,
                                  const std::vector<std::string>& exclude, size_t* left_out) {
  static const std::vector<std::string> kOtherPrograms = {"*.bin",
                                                          "*.bin.index.json",
                                                          "*.pt",
                                                          "*.pth",
                                                          "*.h5",
                                                          "*.msgpack",
                                                          "*.ckpt",
                                                          "*.onnx",
                                                          "*.onnx_data",
                                                          "*.tflite",
                                                          "*.ot",
                                                          "original/*",
                                                          "consolidated*.safetensors"};
  const bool has_safetensors = std::any_of(files.begin(), files.end(), [](const RepoFile& file) {
    return file.path.ends_with(".safetensors");
  });
  *left_out = 0;
  std::vector<RepoFile> selected;
  for (const RepoFile& file : files) {
    if (!include.empty() && !Matches(include, file.path)) continue;
    if (Matches(exclude, file.path)) continue;
    if (include.empty() && has_safetensors && Matches(kOtherPrograms, file.path)) {
      ++*left_out;
      continue;
    }
    selected.push_back(file);
  }
  return selected;
}

}  // namespace tq
