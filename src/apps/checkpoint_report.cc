#include "apps/checkpoint_report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/output.h"
#include "apps/terminal.h"
#include "base/json.h"
#include "codec/codec.h"
#include "weights/matrix_tensors.h"

namespace tq {
namespace {

// "model.layers.3.self_attn.q_proj" -> "self_attn.q_proj"
std::string KindOf(std::string_view path) {
  std::string kind;
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    const bool number = part.find_first_not_of("0123456789") == std::string_view::npos;
    if (number || part == "model" || part == "layers") continue;
    kind += (kind.empty() ? "" : ".") + std::string(part);
  }
  return kind;
}

std::string PathOf(const std::string& tensor_name) {
  return tensor_name.ends_with(".weight") ? tensor_name.substr(0, tensor_name.size() - 7)
                                          : tensor_name;
}

// Index of the kind; a new one is appended.
size_t FindOrAdd(CheckpointReport& report, const std::string& kind, const std::string& format,
                 const Shape& shape) {
  for (size_t i = 0; i < report.kinds.size(); ++i) {
    const MatrixKind& known = report.kinds[i];
    if (known.kind == kind && known.format == format && known.shape == shape) return i;
  }
  MatrixKind added;
  added.kind = kind;
  added.format = format;
  added.shape = shape;
  report.kinds.push_back(std::move(added));
  return report.kinds.size() - 1;
}

void Count(CheckpointReport& report, const std::string& path, const std::string& format,
           const Shape& shape, int64_t stored_bytes) {
  const size_t index = FindOrAdd(report, KindOf(path), format, shape);
  report.kind_of_path[path] = index;
  MatrixKind& kind = report.kinds[index];
  ++kind.count;
  kind.weights += NumElements(shape);
  kind.stored_bytes += stored_bytes;
}

Status CountNeed(const WeightSource& source, const TensorNeed& need, bool config_rotates,
                 CheckpointReport& report) {
  const std::string path = PathOf(need.name);
  const SourceTensor* plain = source.Find(need.name);
  const bool coded = plain == nullptr || !plain->is_float_like;
  const bool matrix = need.shape.size() == 2 && need.name.ends_with(".weight");
  if (matrix && coded) {
    TQ_ASSIGN_OR_RETURN(const MatrixTensors stored,
                        ReadMatrix(source, path, need.shape[0], need.shape[1], config_rotates));
    int64_t bytes = 0;
    for (const SourceTensor* part : stored.parts) bytes += static_cast<int64_t>(part->bytes.size());
    Count(report, path, FormatName(stored.matrix), need.shape, bytes);
    return Status::Ok();
  }
  const SourceTensor* tensor = source.Find(need.name);
  if (tensor == nullptr) {
    return NotFound(fmt::format("{}: expected tensor {}, found none", source.path(), need.name));
  }
  Count(report, path, StoredTypeName(*tensor), tensor->shape,
        static_cast<int64_t>(tensor->bytes.size()));
  return Status::Ok();
}

}  // namespace

std::string StoredTypeName(const SourceTensor& tensor) {
  if (tensor.is_float_like) return GetCodec(tensor.codec).name;
  return std::string(DTypeName(tensor.dtype));
}

Result<CheckpointReport> ReportCheckpoint(const WeightSource& source) {
  CheckpointReport report;
  for (const SourceTensor& tensor : source.tensors()) {
    report.stored_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  Result<ModelSpec> spec = ParseModelSpec(config, source.facts());
  if (!spec.ok() && spec.status().code() != StatusCode::kUnsupported) return spec.status();
  if (!spec.ok()) {
    report.not_runnable = spec.status().message();
    for (const SourceTensor& tensor : source.tensors()) {
      Count(report, PathOf(tensor.name), StoredTypeName(tensor), tensor.shape,
            static_cast<int64_t>(tensor.bytes.size()));
    }
    return report;
  }
  report.spec = std::move(spec).value();
  TQ_ASSIGN_OR_RETURN(report.parts, ReadCheckpointParts(source));
  const bool rotates = ConfigRotates(config);
  for (const TensorNeed& need : NeededTensors(*report.spec, &source)) {
    TQ_RETURN_IF_ERROR(CountNeed(source, need, rotates, report));
  }
  return report;
}

void AddPrepared(const Model& model, CheckpointReport& report) {
  for (const Model::NamedWeight& named : model.Weights()) {
    const auto found = report.kind_of_path.find(named.name);
    if (found == report.kind_of_path.end()) continue;
    MatrixKind& kind = report.kinds[found->second];
    kind.prepared_bytes += named.weight->bytes();
    const std::string kernel = named.weight->kernel();
    if (kind.kernel.find(kernel) != std::string::npos) continue;
    kind.kernel += (kind.kernel.empty() ? "" : ", ") + kernel;
  }
}

int64_t KvBytesPerToken(const ModelSpec& spec, const KvSettings& settings) {
  int64_t bytes = 0;
  for (const CacheNeeds& needs : CacheNeedsOf(spec, settings)) {
    for (const KvLayout& layout : needs.paged) bytes += layout.page_bytes() / kPageTokens;
  }
  return bytes;
}

std::string KindsTable(const CheckpointReport& report) {
  const auto bytes = [](int64_t n) { return HumanBytes(static_cast<double>(n)); };
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "count", "shape", "format", "bits/weight", "stored", "prepared", "kernel"}};
  for (const MatrixKind& kind : report.kinds) {
    rows.push_back({kind.kind, fmt::to_string(kind.count), ShapeString(kind.shape), kind.format,
                    fmt::format("{:.3f}", kind.bits_per_weight()), bytes(kind.stored_bytes),
                    kind.kernel.empty() ? "" : bytes(kind.prepared_bytes), kind.kernel});
  }
  return FormatTable(rows, {false, true, false, false, true, true, true, false});
}

OrderedJson KindsJson(const CheckpointReport& report) {
  OrderedJson list = OrderedJson::array();
  for (const MatrixKind& kind : report.kinds) {
    OrderedJson entry = {{"kind", kind.kind},
                         {"count", kind.count},
                         {"shape", kind.shape},
                         {"format", kind.format},
                         {"bits_per_weight", kind.bits_per_weight()},
                         {"stored_bytes", kind.stored_bytes}};
    if (!kind.kernel.empty()) {
      entry["prepared_bytes"] = kind.prepared_bytes;
      entry["kernel"] = kind.kernel;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace tq
