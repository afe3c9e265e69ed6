// Names of repositories on the Hugging Face Hub, and where its usual cache keeps them:
//   CACHE/models--ORG--NAME/refs/REVISION            the commit that a revision was
//                          /blobs/HASH               contents
//                          /snapshots/COMMIT/PATH    links to them
// The layout of the Python package huggingface_hub, so that other tools see the files.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace tq {

struct RepoId {
  std::string name;  // "ORG/NAME"
  std::string revision = "main";
};

// "ORG/NAME" or "ORG/NAME@REVISION". Errors: kInvalidArgument.
Result<RepoId> ParseRepoId(std::string_view text);
// Whether a --model argument that is no local path can only be such a name.
bool LooksLikeRepoId(std::string_view text);

std::string RepoFolder(const std::string& cache, const RepoId& repo);
// The snapshot of a revision (a branch, tag or commit) that the cache has. Errors: kNotFound.
Result<std::string> FindSnapshot(const std::string& cache, const RepoId& repo);

}  // namespace tq
