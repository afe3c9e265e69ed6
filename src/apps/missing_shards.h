// Which weight files a checkpoint's index names and its folder has not.
#pragma once

#include <string>
#include <vector>

namespace tq {

// "2 of 5 files are missing: a, b; 3.10 GB of 8.00 GB"; "": none, or no index.
std::string MissingShards(const std::string& folder);
// The first part of that.
std::string MissingText(const std::vector<std::string>& names, size_t total);

}  // namespace tq
