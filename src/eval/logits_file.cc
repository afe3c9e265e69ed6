#include "eval/logits_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "eval/forward_runner.h"
#include "eval/step_tokens.h"
#include "weights/safetensors_writer.h"

namespace tq {
namespace {

std::vector<SafetensorsWriter::Tensor> Outputs(const ModelSpec& spec, int64_t num_tokens,
                                               bool hidden) {
  std::vector<SafetensorsWriter::Tensor> tensors = {
      {"logits", DType::kF32, {num_tokens, spec.vocab_size}}};
  if (hidden) {
    const auto states = static_cast<int64_t>(spec.blocks.size()) + 1;
    tensors.push_back({"hidden", DType::kF32, {states, num_tokens, spec.hidden_size}});
  }
  return tensors;
}

std::span<const std::byte> AsBytes(const std::vector<float>& values) {
  return std::as_bytes(std::span<const float>(values));
}

// hidden: one vector per state, appended to.
Status WriteSteps(ForwardRunner& runner, std::span<const int32_t> ids, int64_t step_tokens,
                  const LogitsOptions& options, SafetensorsWriter& writer,
                  std::vector<std::vector<float>>& hidden) {
  std::vector<float> logits;
  std::vector<std::vector<float>> piece;
  const auto total = static_cast<int64_t>(ids.size());
  for (int64_t begin = 0; begin < total; begin += step_tokens) {
    if (options.cancel != nullptr && options.cancel->load()) {
      return Cancelled("evaluation stopped: nothing was written");
    }
    const int64_t n = std::min(step_tokens, total - begin);
    TQ_RETURN_IF_ERROR(
        runner.Append(ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(n)), 0, &logits,
                      options.hidden ? &piece : nullptr));
    TQ_RETURN_IF_ERROR(writer.Append("logits", AsBytes(logits)));
    hidden.resize(piece.size());
    for (size_t i = 0; i < piece.size(); ++i) {
      hidden[i].insert(hidden[i].end(), piece[i].begin(), piece[i].end());
    }
    if (options.progress) options.progress(begin + n, total);
  }
  return Status::Ok();
}

// All ids are checked before any work and before the file is made.
Status CheckIds(std::span<const int32_t> ids, int64_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    return InvalidArgument(
        fmt::format("token {}: expected an id in [0, {}), found {}", i, vocab_size, ids[i]));
  }
  return Status::Ok();
}

}  // namespace

Status WriteLogits(const Model& model, Backend& backend, std::span<const int32_t> ids,
                   const std::string& path, const LogitsOptions& options) {
  const ModelSpec& spec = model.spec();
  const auto num_tokens = static_cast<int64_t>(ids.size());
  TQ_RETURN_IF_ERROR(CheckIds(ids, spec.vocab_size));
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ForwardRunner> runner,
                      ForwardRunner::Create(model, backend, options.kv, num_tokens));
  const std::string staged = fmt::format("{}.partial-{}", path, ::getpid());
  TQ_ASSIGN_OR_RETURN(
      const std::unique_ptr<SafetensorsWriter> writer,
      SafetensorsWriter::Create(staged, Outputs(spec, num_tokens, options.hidden), {}));
  std::vector<std::vector<float>> hidden;
  const int64_t step_tokens = StepTokens(options.prefill_chunk, num_tokens, spec.vocab_size);
  TQ_RETURN_IF_ERROR(WriteSteps(*runner, ids, step_tokens, options, *writer, hidden));
  for (const std::vector<float>& state : hidden) {
    TQ_RETURN_IF_ERROR(writer->Append("hidden", AsBytes(state)));
  }
  TQ_RETURN_IF_ERROR(writer->Finish());
  if (std::rename(staged.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(staged.c_str());
    return IoError(fmt::format("{}: expected to replace it, found: {}", path, why));
  }
  return Status::Ok();
}

}  // namespace tq
