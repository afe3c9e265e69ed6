// Downloads files in ranges over several connections, and what else asks the Hub. Private to this
// folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/http.h"
#include "hub/partial_file.h"
#include "hub/pull.h"
#include "hub/repo_files.h"

namespace tq {

struct Download {
  const RepoFile* file;
  std::string url;
  std::unique_ptr<PartialFile> partial;
};

// Errors: as Pull. missing_bytes: what is to come, for the progress.
Status DownloadAll(std::vector<Download>& downloads, const PullOptions& options,
                   int64_t missing_bytes, int64_t* downloaded_bytes);

// GET that waits and tries again where that helps: 429, 5xx, a lost connection. Errors also: kIo,
// kNotFound and kInvalidArgument for statuses that will not change. made_progress: asked after a
// failure; true starts the count of retries anew.
Result<HttpResponse> GetWithRetries(HttpClient& client, HttpRequest& request,
                                    const PullOptions& options,
                                    const std::function<bool()>& made_progress);

// What the Hub says of a repository's files, for ParseListing. Errors: as GetWithRetries.
Result<std::string> FetchListingText(const RepoId& repo, const PullOptions& options);

}  // namespace tq
