#include "hub/pull.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
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

// Room on the disk that a file with holes has; 0: no such file.
int64_t TakenBytes(const std::string& path) {
  constexpr int64_t kBlock = 512;
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? int64_t{info.st_blocks} * kBlock : 0;
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

  std::vector<Download> downloads;
  std::set<std::string> hashes;  // several paths may have one content
  int64_t missing = 0;           // room for it
  for (const RepoFile& file : files) {
    if (!hashes.insert(file.hash).second) continue;
    report.total_bytes += file.size;
    const std::string blob = folder + "/blobs/" + file.hash;
    if (FileExists(blob)) continue;
    missing += std::max<int64_t>(0, file.size - TakenBytes(blob + ".partial"));
    downloads.push_back({&file,
                         fmt::format("{}/{}/resolve/{}/{}", options.hub.endpoint, repo.name,
                                     listing.commit, EscapePath(file.path)),
                         nullptr});
  }
  TQ_RETURN_IF_ERROR(CheckRoom(folder, missing));
  TQ_RETURN_IF_ERROR(MakeFolder(report.snapshot));
  int64_t to_come = 0;
  for (Download& download : downloads) {
    const RepoFile& file = *download.file;
    TQ_ASSIGN_OR_RETURN(download.partial, PartialFile::Open(folder + "/blobs/" + file.hash,
                                                            file.size, options.chunk_bytes));
    to_come += file.size - download.partial->bytes_complete();
  }
  TQ_RETURN_IF_ERROR(DownloadAll(downloads, options, to_come, &report.downloaded_bytes));
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
