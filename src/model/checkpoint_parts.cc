#include "model/checkpoint_parts.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "model/spec.h"
#include "weights/ignorable.h"

namespace tq {
namespace {

// "a.b.weight" -> "a.b", and likewise for the other parts of a quantized matrix.
std::string_view PathOf(std::string_view name) { return name.substr(0, name.rfind('.')); }

CheckpointParts::Unused& Entry(CheckpointParts& parts, std::string_view part) {
  const auto found =
      std::find_if(parts.unused.begin(), parts.unused.end(),
                   [&](const CheckpointParts::Unused& known) { return known.part == part; });
  if (found != parts.unused.end()) return *found;
  return parts.unused.emplace_back(CheckpointParts::Unused{.part = std::string(part)});
}

}  // namespace

Result<CheckpointParts> ReadCheckpointParts(const WeightSource& source) {
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  TQ_ASSIGN_OR_RETURN(const ModelSpec spec, ParseModelSpec(config, source.facts()));
  std::set<std::string, std::less<>> mapped;
  for (const TensorNeed& need : NeededTensors(spec, &source)) {
    if (need.mapped) mapped.emplace(PathOf(need.name));
  }
  CheckpointParts parts;
  for (const SourceTensor& tensor : source.tensors()) {
    const auto bytes = static_cast<int64_t>(tensor.bytes.size());
    const std::string_view part = IgnorablePart(source, tensor.name);
    if (mapped.contains(PathOf(tensor.name))) {
      parts.mapped_bytes += bytes;
    } else if (part.empty()) {
      parts.prepared_bytes += bytes;
    } else if (part != "buffer") {
      CheckpointParts::Unused& entry = Entry(parts, part);
      ++entry.num_tensors;
      entry.bytes += bytes;
    }
  }
  return parts;
}

std::string UnusedText(const CheckpointParts& parts) {
  std::string text;
  for (const CheckpointParts::Unused& unused : parts.unused) {
    text += fmt::format("{}{} ({} tensors, {:.1f} MB)", text.empty() ? "" : ", ", unused.part,
                        unused.num_tensors, static_cast<double>(unused.bytes) * 1e-6);
  }
  return text;
}

}  // namespace tq
