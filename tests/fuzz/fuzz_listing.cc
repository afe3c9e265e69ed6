// What a server says about a repository: any bytes become a listing whose paths and hashes stay in
// their folders, or an error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hub/repo_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto listing = tq::ParseListing(text, {"org/model", "main"});
  if (!listing.ok()) return 0;
  for (const tq::RepoFile& file : listing->files) {
    if (file.path.empty() || file.path.front() == '/' || file.path.find("..") == 0) std::abort();
    if (file.path.find("/../") != std::string::npos || file.path.ends_with("/..")) std::abort();
    if (file.hash.find('/') != std::string::npos || file.size < 0) std::abort();
  }
  size_t left_out = 0;
  tq::SelectFiles(listing->files, {}, {"*.txt"}, &left_out);
  return 0;
}
