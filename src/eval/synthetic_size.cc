#include "eval/synthetic_size.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/memory.h"
#include "cache/kv_cache.h"
#include "codec/turbo_quant.h"
#include "eval/synthetic_tensors.h"
#include "model/model.h"

namespace tq {
namespace {

// Activations, logits and small vectors of a step, and what the program itself takes.
constexpr int64_t kStepBytes = int64_t{512} << 20;
constexpr int64_t kTileRows = 16;  // backends pad matrices to whole tiles of rows

int64_t PreparedBytes(const TensorNeed& need, const SyntheticOptions& options) {
  if (need.shape.size() < 2) return NumElements(need.shape) * 4;
  const int64_t rows = (need.shape[0] + kTileRows - 1) / kTileRows * kTileRows;
  const int64_t cols = NumElements(need.shape) / need.shape[0];
  if (!IsSyntheticCoded(need, options)) return rows * cols * 2;
  const int64_t signs = cols * 4;
  return rows * cols * options.bits / 8 + rows * (cols / options.group_size) * 2 + signs;
}

// The layer of "model.layers.12.mlp...", -1 for a tensor of none.
int64_t LayerOf(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return -1;
  int64_t layer = -1;
  name.remove_prefix(kLayers.size());
  std::from_chars(name.data(), name.data() + name.size(), layer);
  return layer;
}

int64_t Sum(const std::vector<int64_t>& values, size_t n) {
  return std::accumulate(values.begin(), values.begin() + static_cast<int64_t>(n), int64_t{0});
}

// The most that is in use at a time: the values' source while loading, the cache and a step after.
int64_t PeakBytes(const SyntheticSize& size, size_t layers) {
  return size.shared_bytes + Sum(size.layer_bytes, layers) +
         std::max(size.source_bytes, Sum(size.cache_bytes, layers) + kStepBytes);
}

}  // namespace

int64_t SyntheticSize::weight_bytes() const {
  return shared_bytes + Sum(layer_bytes, layer_bytes.size());
}

SyntheticSize MeasureSynthetic(const SyntheticModel& model, const KvSettings& kv, int64_t pages,
                               int64_t slots) {
  SyntheticSize size;
  size.layer_bytes.assign(model.spec.blocks.size(), 0);
  std::map<SyntheticKind, int64_t> largest;
  for (const TensorNeed& need : NeededTensors(model.spec)) {
    const int64_t layer = LayerOf(need.name);
    const bool inside = layer >= 0 && layer < static_cast<int64_t>(size.layer_bytes.size());
    (inside ? size.layer_bytes[static_cast<size_t>(layer)] : size.shared_bytes) +=
        PreparedBytes(need, model.options);
    for (const SourceTensor& tensor : SyntheticTensors(need, model.options)) {
      int64_t& most = largest[SyntheticKindOf(tensor)];
      most = std::max(most, SyntheticBytes(tensor));
    }
  }
  for (const auto& [kind, bytes] : largest) size.source_bytes += bytes;
  for (const CacheNeeds& needs : CacheNeedsOf(model.spec, kv)) {
    int64_t bytes = needs.state_floats * 4 * slots;
    for (const KvLayout& layout : needs.paged) bytes += layout.page_bytes() * pages;
    size.cache_bytes.push_back(bytes);
  }
  return size;
}

Status CheckSyntheticFits(const SyntheticModel& model, const SyntheticSize& size,
                          int64_t available) {
  const size_t layers = size.layer_bytes.size();
  if (PeakBytes(size, layers) <= available) return Status::Ok();
  size_t fit = layers;
  while (fit > 0 && PeakBytes(size, fit) > available) --fit;
  const std::string advice =
      fit > 0 ? fmt::format("{} of {} layers fit: --layers {}", fit, layers, fit)
              : std::string("not even one layer fits: use fewer --bits or another machine");
  return OutOfMemory(fmt::format(
      "{}: expected at most {:.1f} GB (free memory), found {:.1f} GB ({:.1f} GB of weights, {:.1f} "
      "GB of cache, the rest for a step): {}",
      model.name, Gb(available), Gb(PeakBytes(size, layers)), Gb(size.weight_bytes()),
      Gb(Sum(size.cache_bytes, layers)), advice));
}

}  // namespace tq
