// What a repository on the Hub holds, as its API says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hub/content_hash.h"
#include "hub/repo_id.h"

namespace tq {

struct RepoFile {
  std::string path;  // inside the repository; safe to append to a folder
  int64_t size = 0;
  std::string hash;  // hexadecimal; also the name of its blob
  ContentHash hash_kind = ContentHash::kGitBlob;
};

struct RepoListing {
  std::string commit;
  std::vector<RepoFile> files;
};

// json: the answer of /api/models/NAME/revision/REVISION?blobs=true. Errors: kCorrupt, also for
// paths and hashes that would leave their folder.
Result<RepoListing> ParseListing(std::string_view json, const RepoId& repo);

// The files that match any of `include` (none: all) and none of `exclude`; patterns as in a shell,
// "*" also matches "/". Without `include`, weights of other programs are left out where there are
// safetensors; their number goes to *left_out.
std::vector<RepoFile> SelectFiles(const std::vector<RepoFile>& files,
                                  const std::vector<std::string>& include,
                                  const std::vector<std::string>& exclude, size_t* left_out);

}  // namespace tq
