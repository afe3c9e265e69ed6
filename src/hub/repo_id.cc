#include "hub/repo_id.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"

namespace tq {
namespace {

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool IsName(std::string_view part) {
  constexpr size_t kMaxBytes = 96;
  return !part.empty() && part.size() <= kMaxBytes &&
         std::all_of(part.begin(), part.end(), IsNameChar) && part.front() != '.' &&
         part.front() != '-' && part.find("..") == std::string_view::npos &&
         part.find("--") == std::string_view::npos;
}

// Branches may have slashes.
bool IsRevision(std::string_view text) {
  constexpr size_t kMaxBytes = 200;
  const auto is_ok = [](char c) { return IsNameChar(c) || c == '/'; };
  return !text.empty() && text.size() <= kMaxBytes && text.front() != '/' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), is_ok) &&
         text.find("..") == std::string_view::npos && text.back() != '/';
}

}  // namespace

Result<RepoId> ParseRepoId(std::string_view text) {
  const size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const size_t slash = name.find('/');
  RepoId repo;
  repo.name = std::string(name);
  if (at != std::string_view::npos) repo.revision = std::string(text.substr(at + 1));
  if (slash == std::string_view::npos || !IsName(name.substr(0, slash)) ||
      !IsName(name.substr(slash + 1)) || !IsRevision(repo.revision)) {
    return InvalidArgument(
        fmt::format("expected a repository as ORG/NAME or ORG/NAME@REVISION, found \"{}\"", text));
  }
  return repo;
}

bool LooksLikeRepoId(std::string_view text) { return ParseRepoId(text).ok(); }

std::string RepoFolder(const std::string& cache, const RepoId& repo) {
  std::string folder = "models--" + repo.name;
  folder.replace(folder.find('/'), 1, "--");
  return cache + "/" + folder;
}

Result<std::string> FindSnapshot(const std::string& cache, const RepoId& repo) {
  const std::string folder = RepoFolder(cache, repo);
  std::string commit = repo.revision;
  if (const auto ref = ReadTextFile(folder + "/refs/" + repo.revision, 4096); ref.ok()) {
    commit = *ref;
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  }
  const std::string snapshot = folder + "/snapshots/" + commit;
  if (commit.find("..") != std::string::npos || !IsDirectory(snapshot)) {
    return NotFound(fmt::format("{}: expected a snapshot of {} in the cache, found none", folder,
                                repo.revision));
  }
  return snapshot;
}

}  // namespace tq
