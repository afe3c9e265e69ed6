#include "eval/perplexity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "eval/forward_runner.h"
#include "eval/step_tokens.h"

namespace tq {
namespace {

// Adds the losses of one chunk to *nll.
Status AddChunk(ForwardRunner& runner, std::span<const int32_t> chunk, int64_t step_tokens,
                int64_t vocab_size, std::vector<float>& logits, double* nll) {
  runner.Reset();
  const auto length = static_cast<int64_t>(chunk.size());
  for (int64_t begin = 0; begin < length; begin += step_tokens) {
    const int64_t n = std::min(step_tokens, length - begin);
    const auto ids = chunk.subspan(static_cast<size_t>(begin), static_cast<size_t>(n));
    TQ_RETURN_IF_ERROR(runner.Append(ids, 0, &logits));
    for (int64_t i = 0; i < n && begin + i + 1 < length; ++i) {
      const std::span<const float> row(logits.data() + i * vocab_size,
                                       static_cast<size_t>(vocab_size));
      *nll += NegativeLogLikelihood(row, chunk[static_cast<size_t>(begin + i + 1)]);
    }
  }
  return Status::Ok();
}

}  // namespace

std::string JoinNonBlankLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t\v\f\r") == std::string_view::npos) continue;
    if (!out.empty()) out += "\n\n";
    out += line;
  }
  return out;
}

double NegativeLogLikelihood(std::span<const float> logits, int32_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return std::log(sum) + largest - static_cast<double>(logits[static_cast<size_t>(id)]);
}

Result<int64_t> CountChunks(int64_t num_ids, const PerplexityOptions& options) {
  if (options.seq_len < 2 || options.num_samples < 1) {
    return InvalidArgument(
        fmt::format("expected chunks of at least 2 tokens and at least 1 of them, found {} and {}",
                    options.seq_len, options.num_samples));
  }
  const int64_t chunks = std::min(options.num_samples, num_ids / options.seq_len);
  if (chunks > 0) return chunks;
  return InvalidArgument(fmt::format(
      "expected a text of at least {} tokens (one chunk), found {}: take a longer text or a "
      "shorter chunk",
      options.seq_len, num_ids));
}

Result<PerplexityReport> Perplexity(const Model& model, Backend& backend,
                                    std::span<const int32_t> ids,
                                    const PerplexityOptions& options) {
  const int64_t vocab_size = model.spec().vocab_size;
  PerplexityReport report;
  TQ_ASSIGN_OR_RETURN(report.chunks, CountChunks(static_cast<int64_t>(ids.size()), options));
  report.tokens = report.chunks * options.seq_len;
  report.targets = report.chunks * (options.seq_len - 1);
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ForwardRunner> runner,
                      ForwardRunner::Create(model, backend, options.kv, options.seq_len));
  const auto start = std::chrono::steady_clock::now();
  std::vector<float> logits;
  double nll = 0;
  for (int64_t i = 0; i < report.chunks; ++i) {
    if (options.cancel != nullptr && options.cancel->load()) return Cancelled("evaluation stopped");
    const auto chunk =
        ids.subspan(static_cast<size_t>(i * options.seq_len), static_cast<size_t>(options.seq_len));
    TQ_RETURN_IF_ERROR(AddChunk(*runner, chunk,
                                StepTokens(options.prefill_chunk, options.seq_len, vocab_size),
                                vocab_size, logits, &nll));
    if (options.progress) options.progress((i + 1) * options.seq_len, report.tokens);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.mean_nll = nll / static_cast<double>(report.targets);
  report.perplexity = std::exp(report.mean_nll);
  return report;
}

}  // namespace tq
