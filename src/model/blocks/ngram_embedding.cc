#include "model/blocks/ngram_embedding.h"

#include <algorithm>

namespace tq {
namespace {

bool IsPrime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n >= 2;
}

// Every hash head has a prime number of rows: the next one from first_prime_at on that no earlier
// head, of this or an earlier layer, has taken.
int64_t RowsPerShard(const NgramSpec& spec, int num_heads) {
  int64_t rows = 0;
  int64_t prime = spec.first_prime_at - 1;
  for (int head = 0; head < (spec.ordinal + 1) * num_heads; ++head) {
    do ++prime;
    while (!IsPrime(prime));
    if (head >= spec.ordinal * num_heads) rows += prime;
  }
  rows = (rows + spec.rows_multiple - 1) / spec.rows_multiple * spec.rows_multiple;
  return (rows + spec.num_shards - 1) / spec.num_shards;
}

}  // namespace

Result<std::unique_ptr<NgramEmbedding>> NgramEmbedding::Load(const ModelSpec& model,
                                                             const NgramSpec& spec,
                                                             const std::string& prefix,
                                                             TensorLoader& loader) {
  auto out = std::make_unique<NgramEmbedding>();
  out->spec_ = spec;
  out->num_streams_ = model.num_streams;
  out->hidden_ = model.hidden_size;
  const int64_t width = out->width();
  const std::string table = prefix + "ple_embedding.";
  TQ_ASSIGN_OR_RETURN(out->multipliers_,
                      loader.Integers(table + "layer_multipliers", spec.ngram_size));
  TQ_ASSIGN_OR_RETURN(out->primes_,
                      loader.Integers(table + "ngram_heads_vocab_sizes", out->num_heads()));
  TQ_ASSIGN_OR_RETURN(out->offsets_,
                      loader.Integers(table + "ngram_heads_offsets", out->num_heads()));
  out->rows_per_shard_ = RowsPerShard(spec, out->num_heads());
  const int64_t total = spec.num_shards * out->rows_per_shard_;
  for (int h = 0; h < out->num_heads(); ++h) {
    const int64_t prime = out->primes_[static_cast<size_t>(h)];
    const int64_t offset = out->offsets_[static_cast<size_t>(h)];
    if (loader.reads() && (prime < 1 || offset < 0 || prime > total || offset > total - prime)) {
      return Corrupt(table + "ngram_heads_*: expected ranges inside the table's " +
                     std::to_string(total) + " rows, found " + std::to_string(offset) + " + " +
                     std::to_string(prime));
    }
  }
  for (int i = 0; i < spec.num_shards; ++i) {
    const std::string name = table + "ngram_embedding.shard_" + std::to_string(i);
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> shard,
                        loader.Rows(name + ".weight", out->rows_per_shard_, out->head_dim()));
    out->shards_.push_back(std::move(shard));
  }
  TQ_ASSIGN_OR_RETURN(out->key_proj_,
                      loader.LoadLinear(prefix + "key_proj", width, spec.embed_dim, false));
  TQ_ASSIGN_OR_RETURN(out->value_proj_, loader.LoadLinear(prefix + "value_proj", model.hidden_size,
                                                          spec.embed_dim, false));
  const auto norm = [&](const char* name) {
    return Norm::Load(model.hyper_norm, prefix + name + ".weight", width, loader);
  };
  TQ_ASSIGN_OR_RETURN(out->key_norm_, norm("norm_key"));
  TQ_ASSIGN_OR_RETURN(out->query_norm_, norm("norm_query"));
  TQ_ASSIGN_OR_RETURN(out->conv_norm_, norm("norm_conv"));
  TQ_ASSIGN_OR_RETURN(out->conv_,
                      loader.ConvKernel(prefix + "conv1d.weight", width, spec.conv_kernel));
  return out;
}

// shift s of token t is the id at t - s, or the padding id when that lies before t's segment, which
// begins after the last padding id strictly before t. State: the last ngram_size - 1 ids, newest
// last, then how many tokens the segment of the next token has (at most ngram_size matter). Ids fit
// floats exactly (below 2^24).
void NgramEmbedding::HashTokens(StepContext& step, StateRef state, int64_t* rows) const {
  const int n = spec_.ngram_size;
  int64_t* history = step.scratch.Alloc<int64_t>(static_cast<size_t>(n));
  for (const SequencePlan& sequence : step.plan.sequences) {
    float* slot = state.base + sequence.state_slot * state.state_stride;
    const bool starts = sequence.start_position == 0;
    int64_t length = starts ? 0 : static_cast<int64_t>(slot[n - 1]);
    for (int i = 0; i + 1 < n; ++i) {
      history[static_cast<size_t>(i)] = starts ? spec_.padding_id : static_cast<int64_t>(slot[i]);
    }
    for (int64_t t = 0; t < sequence.num_tokens; ++t) {
      const int64_t token = sequence.first_token + t;
      const int64_t id = step.plan.ids[static_cast<size_t>(token)];
      history[static_cast<size_t>(n - 1)] = id;
      int64_t* out = rows + token * num_heads();
      uint64_t mix = 0;
      for (int s = 0; s < n; ++s) {
        const int64_t shifted =
            s <= length ? history[static_cast<size_t>(n - 1 - s)] : spec_.padding_id;
        mix ^= static_cast<uint64_t>(shifted) *
               static_cast<uint64_t>(multipliers_[static_cast<size_t>(s)]);
        if (s == 0) continue;
        for (int j = 0; j < spec_.heads_per_ngram; ++j) {
          const auto head = static_cast<size_t>((s - 1) * spec_.heads_per_ngram + j);
          out[head] =
              static_cast<int64_t>(mix % static_cast<uint64_t>(primes_[head])) + offsets_[head];
        }
      }
      length = id == spec_.padding_id ? 0 : std::min<int64_t>(length + 1, n);
      std::rotate(history, history + 1, history + n);
    }
    for (int i = 0; i + 1 < n; ++i) slot[i] = static_cast<float>(history[static_cast<size_t>(i)]);
    slot[n - 1] = static_cast<float>(length);
  }
}

void NgramEmbedding::Embed(int64_t num_tokens, const int64_t* rows, float* out) const {
  for (int64_t i = 0; i < num_tokens * num_heads(); ++i) {
    const RowTable& shard = *shards_[static_cast<size_t>(rows[i] / rows_per_shard_)];
    shard.Read(rows[i] % rows_per_shard_, out + i * head_dim());
  }
}

void NgramEmbedding::Add(StepContext& step, float* x, StateRef state) const {
  const ScratchScope scope(step.scratch);
  const int64_t tokens = step.num_tokens();
  const int64_t n = tokens * width();
  int64_t* rows = step.scratch.Alloc<int64_t>(static_cast<size_t>(tokens * num_heads()));
  float* embedding = step.Floats(tokens * spec_.embed_dim);
  float* key = step.Floats(n);
  float* value = step.Floats(tokens * hidden_);
  float* query = step.Floats(n);
  float* flat = step.Floats(n);
  HashTokens(step, state, rows);
  Embed(tokens, rows, embedding);
  Project(step, embedding, tokens, {{&key_proj_, key}, {&value_proj_, value}});
  key_norm_.Apply(step, key, key, tokens * num_streams_, hidden_, num_streams_);
  query_norm_.Apply(step, x, query, tokens * num_streams_, hidden_, num_streams_);
  step.backend.StreamGate({key, query, value, flat, tokens, num_streams_, hidden_});
  float* normed = key;  // used up
  float* mixed = query;
  conv_norm_.Apply(step, flat, normed, tokens * num_streams_, hidden_, num_streams_);
  step.backend.CausalConv({.plan = &step.plan,
                           .x = normed,
                           .x_stride = width(),
                           .w = conv_.data(),
                           .out = mixed,
                           .channels = width(),
                           .kernel = spec_.conv_kernel,
                           .dilation = spec_.ngram_size,
                           .state = {state.base + id_state(), state.state_stride}});
  step.backend.Add({flat, x, n});
  step.backend.Add({mixed, x, n});
}

void NgramEmbedding::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context, {&key_proj_, &value_proj_});
}

int64_t NgramEmbedding::mapped_bytes() const {
  int64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->mapped_bytes();
  return bytes;
}

}  // namespace tq
