#include "eval/divergence.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "eval/forward_runner.h"
#include "eval/step_tokens.h"

namespace tq {
namespace {

double LogSumExp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return std::log(sum) + largest;
}

auto Largest(std::span<const float> row) {
  return std::max_element(row.begin(), row.end()) - row.begin();
}

struct Sums {
  double kl = 0;
  double nll = 0;
  double reference_nll = 0;
  int64_t agreements = 0;
};

// Both models over one chunk, step by step.
class ChunkPair {
 public:
  ChunkPair(ForwardRunner& model, ForwardRunner& reference, int64_t vocab_size)
      : model_(model), reference_(reference), vocab_size_(static_cast<size_t>(vocab_size)) {}

  Status Add(std::span<const int32_t> chunk, size_t step_tokens, Sums& sums) {
    model_.Reset();
    reference_.Reset();
    for (size_t begin = 0; begin < chunk.size(); begin += step_tokens) {
      const size_t n = std::min(step_tokens, chunk.size() - begin);
      TQ_RETURN_IF_ERROR(model_.Append(chunk.subspan(begin, n), 0, &logits_));
      TQ_RETURN_IF_ERROR(reference_.Append(chunk.subspan(begin, n), 0, &reference_logits_));
      for (size_t i = 0; i < n; ++i) {
        const auto row = std::span<const float>(logits_).subspan(i * vocab_size_, vocab_size_);
        const auto expected =
            std::span<const float>(reference_logits_).subspan(i * vocab_size_, vocab_size_);
        sums.kl += KlDivergence(expected, row);
        sums.agreements += Largest(expected) == Largest(row) ? 1 : 0;
        if (begin + i + 1 == chunk.size()) continue;
        sums.nll += NegativeLogLikelihood(row, chunk[begin + i + 1]);
        sums.reference_nll += NegativeLogLikelihood(expected, chunk[begin + i + 1]);
      }
    }
    return Status::Ok();
  }

 private:
  ForwardRunner& model_;
  ForwardRunner& reference_;
  size_t vocab_size_;
  std::vector<float> logits_;
  std::vector<float> reference_logits_;
};

}  // namespace

double KlDivergence(std::span<const float> reference, std::span<const float> other) {
  const double total = LogSumExp(reference);
  const double shift = LogSumExp(other) - total;
  double sum = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double x = reference[i];
    sum += std::exp(x - total) * (x - static_cast<double>(other[i]) + shift);
  }
  return sum;
}

Result<DivergenceReport> Divergence(const Model& model, Backend& backend, const Model& reference,
                                    Backend& reference_backend, std::span<const int32_t> ids,
                                    const PerplexityOptions& options) {
  const int64_t vocab_size = model.spec().vocab_size;
  if (vocab_size != reference.spec().vocab_size) {
    return InvalidArgument(
        fmt::format("reference: expected the vocabulary of the model ({} ids), found {}",
                    vocab_size, reference.spec().vocab_size));
  }
  DivergenceReport report;
  TQ_ASSIGN_OR_RETURN(report.chunks, CountChunks(static_cast<int64_t>(ids.size()), options));
  report.tokens = report.chunks * options.seq_len;
  TQ_ASSIGN_OR_RETURN(const std::unique_ptr<ForwardRunner> runner,
                      ForwardRunner::Create(model, backend, options.kv, options.seq_len));
  TQ_ASSIGN_OR_RETURN(
      const std::unique_ptr<ForwardRunner> reference_runner,
      ForwardRunner::Create(reference, reference_backend, options.reference_kv.value_or(options.kv),
                            options.seq_len));
  const auto start = std::chrono::steady_clock::now();
  ChunkPair pair(*runner, *reference_runner, vocab_size);
  const auto length = static_cast<size_t>(options.seq_len);
  const int64_t step = StepTokens(options.prefill_chunk, options.seq_len, vocab_size);
  Sums sums;
  for (int64_t i = 0; i < report.chunks; ++i) {
    if (options.cancel != nullptr && options.cancel->load()) return Cancelled("evaluation stopped");
    TQ_RETURN_IF_ERROR(pair.Add(ids.subspan(static_cast<size_t>(i) * length, length),
                                static_cast<size_t>(step), sums));
    if (options.progress) options.progress((i + 1) * options.seq_len, report.tokens);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto tokens = static_cast<double>(report.tokens);
  const auto targets = static_cast<double>(report.chunks * (options.seq_len - 1));
  report.kl = sums.kl / tokens;
  report.top1_agreement = static_cast<double>(sums.agreements) / tokens;
  report.perplexity = std::exp(sums.nll / targets);
  report.reference_perplexity = std::exp(sums.reference_nll / targets);
  return report;
}

}  // namespace tq
