#include "eval/kv_table.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "cache/kv_cache.h"
#include "eval/divergence.h"
#include "eval/forward_runner.h"
#include "eval/step_tokens.h"

namespace tq {
namespace {

// One setting: its cache and its sums.
struct Column {
  std::unique_ptr<ForwardRunner> runner;
  double nll = 0;
  double kl = 0;
  int64_t agreements = 0;
};

auto Largest(std::span<const float> row) {
  return std::max_element(row.begin(), row.end()) - row.begin();
}

class ChunkTable {
 public:
  ChunkTable(std::vector<Column>& columns, int64_t vocab_size)
      : columns_(columns), vocab_size_(static_cast<size_t>(vocab_size)) {}

  Status Add(std::span<const int32_t> chunk, size_t step_tokens) {
    for (Column& column : columns_) column.runner->Reset();
    for (size_t begin = 0; begin < chunk.size(); begin += step_tokens) {
      const size_t n = std::min(step_tokens, chunk.size() - begin);
      for (Column& column : columns_) {
        const bool exact = &column == columns_.data();
        std::vector<float>& logits = exact ? exact_logits_ : logits_;
        TQ_RETURN_IF_ERROR(column.runner->Append(chunk.subspan(begin, n), 0, &logits));
        for (size_t i = 0; i < n; ++i) {
          const std::span<const float> row = Row(logits, i);
          if (!exact) {
            column.kl += KlDivergence(Row(exact_logits_, i), row);
            column.agreements += Largest(Row(exact_logits_, i)) == Largest(row) ? 1 : 0;
          }
          if (begin + i + 1 < chunk.size()) {
            column.nll += NegativeLogLikelihood(row, chunk[begin + i + 1]);
          }
        }
      }
    }
    return Status::Ok();
  }

 private:
  std::span<const float> Row(const std::vector<float>& logits, size_t i) const {
    return std::span<const float>(logits).subspan(i * vocab_size_, vocab_size_);
  }

  std::vector<Column>& columns_;
  size_t vocab_size_;
  std::vector<float> exact_logits_;
  std::vector<float> logits_;
};

}  // namespace

Result<KvTable> EvaluateKv(const Model& model, Backend& backend, std::span<const int32_t> ids,
                           std::span<const KvSettings> settings, const PerplexityOptions& options) {
  const int64_t vocab_size = model.spec().vocab_size;
  KvTable table;
  TQ_ASSIGN_OR_RETURN(table.chunks, CountChunks(static_cast<int64_t>(ids.size()), options));
  table.tokens = table.chunks * options.seq_len;
  table.rows.push_back({.kv = options.kv});
  for (const KvSettings& kv : settings) table.rows.push_back({.kv = kv});
  std::vector<Column> columns;
  for (KvRow& row : table.rows) {
    row.bytes_per_token = static_cast<double>(KvCache::BytesPerPage(model.Needs(row.kv))) /
                          static_cast<double>(kPageTokens);
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<ForwardRunner> runner,
                        ForwardRunner::Create(model, backend, row.kv, options.seq_len));
    columns.push_back({.runner = std::move(runner)});
  }
  const auto start = std::chrono::steady_clock::now();
  ChunkTable chunks(columns, vocab_size);
  const auto length = static_cast<size_t>(options.seq_len);
  const int64_t step = StepTokens(options.prefill_chunk, options.seq_len, vocab_size);
  for (int64_t i = 0; i < table.chunks; ++i) {
    if (options.cancel != nullptr && options.cancel->load()) return Cancelled("evaluation stopped");
    TQ_RETURN_IF_ERROR(chunks.Add(ids.subspan(static_cast<size_t>(i) * length, length),
                                  static_cast<size_t>(step)));
    if (options.progress) options.progress((i + 1) * options.seq_len, table.tokens);
  }
  table.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto targets = static_cast<double>(table.chunks * (options.seq_len - 1));
  for (size_t i = 0; i < columns.size(); ++i) {
    KvRow& row = table.rows[i];
    row.perplexity = std::exp(columns[i].nll / targets);
    row.kl = columns[i].kl / static_cast<double>(table.tokens);
    row.top1_agreement =
        i == 0 ? 1.0
               : static_cast<double>(columns[i].agreements) / static_cast<double>(table.tokens);
  }
  return table;
}

}  // namespace tq
