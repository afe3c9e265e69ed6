// Where a plan's model comes from: a local checkpoint, a snapshot in the cache of the Hub, or the
// headers of a repository.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/terminal.h"
#include "base/status.h"
#include "hub/repo_headers.h"
#include "weights/source.h"

namespace tq {

struct PlanSource {
  std::string model;                     // as given
  bool is_remote = false;                // headers alone are here
  std::unique_ptr<RepoHeaders> headers;  // of a remote one; outlives `source`
  std::unique_ptr<WeightSource> source;  // null when files are missing
  std::string missing;                   // "": complete; else which files, one line
  int64_t stored_bytes = 0;              // of the weight files that are there, or could be
  int64_t tokenizer_bytes = 0;
  std::string largest_file;    // of a local one, for the speed of its disk
  std::string template_error;  // "": usable, none, or not known

  // Errors of `source` name the folder of headers; people know the repository.
  Status Named(const Status& status) const;
};

// include: which .gguf of a repository. Errors: kNotFound (no such path; what looks like a path is
// never taken for a repository), of FetchHeaders, of OpenSource.
Result<PlanSource> OpenPlanSource(const std::string& model, const std::vector<std::string>& include,
                                  const Console& console, const std::atomic<bool>& cancel);

}  // namespace tq
