#include "hub/pull.h"

#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "hub/download.h"
#include "hub/http.h"
#include "hub/repo_files.h"

namespace tq {
namespace {

namespace fs = std::filesystem;

Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return IoError(fmt::format("{}: {}", folder.string(), error.message()));
  return Status::Ok();
}

// snapshots/COMMIT/a/b.txt -> ../../../blobs/HASH
Status LinkFile(const std::string& repo_folder, const std::string& snapshot, const RepoFile& file) {
  const fs::path link = fs::path(snapshot) / file.path;
  TQ_RETURN_IF_ERROR(MakeFolder(link.parent_path()));
  const fs::path target =
      fs::path(repo_folder + "/blobs/" + file.hash).lexically_relative(link.parent_path());
  std::error_code error;
  if (fs::read_symlink(link, error) == target) return Status::Ok();
  fs::remove(link, error);
  fs::create_symlink(target, link, error);
  if (error) return IoError(fmt::format("{}: {}", link.string(), error.message()));
  return Status::Ok();
}

Status CheckRoom(const std::string& folder, int64_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  constexpr int64_t kSpare = int64_t{64} << 20;
  if (error || static_cast<int64_t>(space.available) >= needed + kSpare) return Status::Ok();
  return IoError(fmt::format(
      "{}: expected room for {:.2f} GB, found {:.2f} GB: free some, or set "
      "HF_HOME to a larger disk",
      folder, static_cast<double>(needed) / 1e9, static_cast<double>(space.available) / 1e9));
}

}  // namespace

Result<PullReport> Pull(const RepoId& repo, const PullOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  TQ_ASSIGN_OR_RETURN(const std::string text, FetchListingText(repo, options));
  TQ_ASSIGN_OR_RETURN(const RepoListing listing, ParseListing(text, repo));
  PullReport report;
  size_t left_out = 0;
  const std::vector<RepoFile> files =
      SelectFiles(listing.files, options.include, options.exclude, &left_out);
  if (files.empty()) {
    return NotFound(fmt::format("{}: none of its {} files is wanted by --include and --exclude",
                                repo.name, listing.files.size()));
  }
  const std::string folder = RepoFolder(options.hub.cache, repo);
  report.commit = listing.commit;
  report.snapshot = folder + "/snapshots/" + listing.commit;
  report.left_out = static_cast<int64_t>(left_out);
  report.num_files = static_cast<int64_t>(files.size());
  TQ_RETURN_IF_ERROR(MakeFolder(folder + "/blobs"));
  TQ_RETURN_IF_ERROR(MakeFolder(report.snapshot));

  std::vector<Download> downloads;
  std::set<std::string> hashes;  // several paths may have one content
  int64_t present = 0;
  int64_t missing = 0;
  for (const RepoFile& file : files) {
    if (!hashes.insert(file.hash).second) continue;
    report.total_bytes += file.size;
    const std::string blob = folder + "/blobs/" + file.hash;
    if (FileExists(blob)) {
      present += file.size;
      continue;
    }
    TQ_ASSIGN_OR_RETURN(auto partial, PartialFile::Open(blob, file.size, options.chunk_bytes));
    present += partial->bytes_complete();
    missing += file.size - partial->bytes_complete();
    downloads.push_back({&file,
                         fmt::format("{}/{}/resolve/{}/{}", options.hub.endpoint, repo.name,
                                     listing.commit, EscapePath(file.path)),
                         std::move(partial)});
  }
  TQ_RETURN_IF_ERROR(CheckRoom(folder, missing));
  TQ_RETURN_IF_ERROR(
      DownloadAll(downloads, options, present, report.total_bytes, &report.downloaded_bytes));
  for (const RepoFile& file : files) {
    TQ_RETURN_IF_ERROR(LinkFile(folder, report.snapshot, file));
  }
  // Last: only a whole snapshot is found by its revision.
  const fs::path ref = fs::path(folder) / "refs" / repo.revision;
  TQ_RETURN_IF_ERROR(MakeFolder(ref.parent_path()));
  if (repo.revision != listing.commit) {
    TQ_RETURN_IF_ERROR(WriteFile(ref.string(), listing.commit));
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tq
