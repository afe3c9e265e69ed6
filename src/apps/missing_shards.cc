#include "apps/missing_shards.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/terminal.h"
#include "base/file.h"
#include "base/json.h"

namespace tq {

std::string MissingText(const std::vector<std::string>& names, size_t total) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return fmt::format("{} of {} files are missing: {}{}", names.size(), total, text,
                     names.size() > kShown ? ", ..." : "");
}

std::string MissingShards(const std::string& folder) {
  const std::string file = folder + "/model.safetensors.index.json";
  const Result<std::string> text = ReadTextFile(file);
  if (!text.ok()) return "";
  const Result<Json> index = ParseJson(*text, file, 16);
  if (!index.ok() || !index->is_object()) return "";
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object()) return "";
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (shard.is_string()) shards.insert(shard.get<std::string>());
  }
  std::vector<std::string> missing;
  int64_t present = 0;
  for (const std::string& shard : shards) {
    std::error_code error;
    const auto size = std::filesystem::file_size(folder + "/" + shard, error);
    if (error) {
      missing.push_back(shard);
    } else {
      present += static_cast<int64_t>(size);
    }
  }
  if (missing.empty()) return "";
  std::string out = MissingText(missing, shards.size());
  const auto metadata = index->find("metadata");
  if (metadata == index->end() || !metadata->is_object()) return out;
  const auto total = metadata->find("total_size");
  if (total != metadata->end() && total->is_number_unsigned() && total->get<int64_t>() > present) {
    out +=
        fmt::format("; {} of {}", HumanBytes(static_cast<double>(total->get<int64_t>() - present)),
                    HumanBytes(static_cast<double>(total->get<int64_t>())));
  }
  return out;
}

}  // namespace tq
