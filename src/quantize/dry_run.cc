#include "quantize/dry_run.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/statvfs.h>

#include "base/file.h"
#include "base/json.h"
#include "base/threads.h"
#include "codec/hadamard.h"
#include "quantize/convert_plan.h"

namespace tq {
namespace {

using Clock = std::chrono::steady_clock;

const char* ReasonOf(TensorRole role) {
  switch (role) {
    case TensorRole::kEmbedding:
      return "token embeddings: one row per token is read";
    case TensorRole::kNorm:
      return "norms";
    case TensorRole::kBias:
      return "biases";
    case TensorRole::kSmall:
      return "small and sensitive: routers, gates, convolutions, decays";
    case TensorRole::kLinear:
      break;
  }
  return "matrices under 32 rows or columns, or of no whole number of groups";
}

// Role of every tensor, by name and by path (without what follows the last dot).
Result<std::map<std::string, TensorRole>> Roles(const WeightSource& source) {
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec model, ParseModelSpec(config, source.facts()));
  std::map<std::string, TensorRole> roles;
  for (const TensorNeed& need : NeededTensors(model, &source)) {
    roles[need.name] = need.role;
    if (need.name.ends_with(".weight"))
      roles[need.name.substr(0, need.name.rfind('.'))] = need.role;
  }
  return roles;
}

// Free space where the output would be: of the nearest folder above it that exists.
Result<int64_t> FreeBytes(const std::string& output) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(output, error);
  while (path.has_relative_path() && !FileExists(path.string())) path = path.parent_path();
  struct statvfs info {};
  if (error || ::statvfs(path.c_str(), &info) != 0) {
    return IoError("cannot tell the free space of " + path.string() + ": " + std::strerror(errno));
  }
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

// Encodes rows of made-up weights for a moment.
double MeasureRate(const TurboQuantSpec& spec, int num_threads) {
  constexpr int64_t kCols = 4096;
  constexpr int64_t kRows = 512;
  constexpr auto kTime = std::chrono::milliseconds(150);
  std::vector<float> row(static_cast<size_t>(kCols));
  uint32_t state = 1;
  for (float& x : row) {  // a sum of four uniform numbers is bell-shaped enough
    x = -2.0f;
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525u + 1013904223u;
      x += static_cast<float>(state >> 8) * 0x1p-24f;
    }
  }
  const std::vector<float> signs = TurboQuantSigns(1, kCols);
  ThreadPool pool(num_threads);
  const auto encode = [&] {
    pool.ParallelFor(kRows, 1, [&](int64_t begin, int64_t end, int) {
      TurboQuantScratch scratch;
      std::vector<uint32_t> words(
          static_cast<size_t>(TurboQuantWords(spec.codebook_entries, kCols)));
      std::vector<uint16_t> scales(static_cast<size_t>(kCols / spec.group));
      for (int64_t i = begin; i < end; ++i) {
        EncodeTurboQuantRow(spec, row, signs, words.data(), scales.data(), scratch);
      }
    });
  };
  encode();  // threads and caches are awake
  int64_t weights = 0;
  const auto start = Clock::now();
  while (Clock::now() - start < kTime) {
    encode();
    weights += kRows * kCols;
  }
  return static_cast<double>(weights) / std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the weights of that width so far.
int64_t AddWidth(const ConvertItem& item, std::vector<DryRunReport::Width>& widths) {
  const auto same = [&](const DryRunReport::Width& width) {
    return width.codebook_entries == item.spec.codebook_entries && width.group == item.spec.group;
  };
  auto found = std::find_if(widths.begin(), widths.end(), same);
  if (found == widths.end()) {
    found = widths.insert(
        widths.end(), {.codebook_entries = item.spec.codebook_entries, .group = item.spec.group});
  }
  found->matrices += item.num_matrices();
  found->weights += item.weights();
  found->bytes += item.output_bytes;
  return found->weights;
}

void AddKept(const ConvertItem& item, TensorRole role, std::vector<DryRunReport::Kept>& kept) {
  const std::string reason = item.affine ? fmt::format("affine, {} bits in groups of {}",
                                                       item.affine->bits, item.affine->group)
                                         : ReasonOf(role);
  auto found = std::find_if(kept.begin(), kept.end(), [&](const DryRunReport::Kept& entry) {
    return entry.reason == reason;
  });
  if (found == kept.end()) {
    found = kept.insert(kept.end(), DryRunReport::Kept());
    found->reason = reason;
  }
  found->tensors += item.num_matrices();
  found->weights += item.weights();
  found->bytes += item.output_bytes;
}

}  // namespace

std::optional<double> DryRunReport::seconds() const {
  if (!weights_per_second) return std::nullopt;
  return static_cast<double>(totals.quantized_weights) / *weights_per_second;
}

Result<DryRunReport> DryRun(const WeightSource& source, const std::string& output_folder,
                            const ConvertOptions& options) {
  DryRunReport out;
  std::vector<ConvertItem> items;
  TQ_ASSIGN_OR_RETURN(out.totals, PlanConvert(source, options, items));
  TQ_ASSIGN_OR_RETURN(const auto roles, Roles(source));
  TurboQuantSpec most;  // the settings of most weights
  int64_t most_weights = 0;
  for (const ConvertItem& item : items) {
    if (!item.quantize) {
      const auto role = roles.find(item.sources.front());
      AddKept(item, role != roles.end() ? role->second : TensorRole::kSmall, out.kept);
      continue;
    }
    const int64_t weights = AddWidth(item, out.widths);
    if (weights <= most_weights) continue;
    most_weights = weights;
    most = item.spec;
  }
  std::sort(out.widths.begin(), out.widths.end(), [](const auto& a, const auto& b) {
    return std::pair(a.codebook_entries, a.group) < std::pair(b.codebook_entries, b.group);
  });
  std::stable_sort(out.kept.begin(), out.kept.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  out.shards = CountShards(items, options.max_shard_bytes);
  out.output_exists = FileExists(output_folder);
  TQ_ASSIGN_OR_RETURN(out.free_bytes, FreeBytes(output_folder));
  if (options.calibration.empty()) {
    out.weights_per_second = MeasureRate(most, options.num_threads);
  }
  return out;
}

}  // namespace tq
