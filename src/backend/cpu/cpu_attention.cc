#include "backend/cpu/cpu_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/task_queue.h"

namespace tq {
namespace {

// Query tokens that one attention task handles at most.
constexpr int64_t kAttentionTokens = 16;
// Query heads that share every loaded tile in the kernels.
constexpr int64_t kSharedQueries = 8;
// Scores that an index selection holds at a time, and tiles that one of its tasks scores.
constexpr int64_t kScores = int64_t{1} << 22;
constexpr int64_t kScoreTiles = 16;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t unit) { return DivideUp(a, unit) * unit; }

// Keys and values of one type that kernels/attention.cc reads.
bool IsPlain(const KvLayout& layout) {
  const KvFormat format = layout.k_format();
  return layout.v_format() == format && (format == KvFormat::kF16 || format == KvFormat::kF32);
}

// Items (heads of one KV head x tokens) per attention task. With a KV head for very many query
// heads the tokens alone would not keep all threads busy.
int64_t ItemsPerTask(const AttentionArgs& args, int num_threads) {
  const int64_t heads = args.num_heads / args.layout.num_kv_heads;
  const int64_t most = kAttentionTokens * heads;
  if (args.layout.values != KvValues::kKeyPrefix) return most;
  int64_t num_tokens = 0;
  for (const SequencePlan& sequence : args.plan->sequences) num_tokens += sequence.num_tokens;
  const int64_t fair = DivideUp(num_tokens * args.num_heads, int64_t{4} * num_threads);
  return std::min(RoundUp(std::max(fair, kSharedQueries), kSharedQueries), most);
}

// Floats of one thread.
int64_t AttentionWork(const FloatOps& floats, bool integers, const AttentionArgs& args,
                      int64_t items) {
  return RoundUp(IsPlain(args.layout) ? floats.attention_work(args, items)
                                      : floats.packed_attention_work(args, integers, items),
                 16);
}

// What an index selection of one sequence needs.
struct SelectBuffers {
  SelectBuffers(const SequencePlan& sequence, int num_threads, Scratch& scratch)
      : length(RoundUp(sequence.start_position + sequence.num_tokens, kPageTokens)),
        batch(std::clamp<int64_t>(kScores / length, 1, sequence.num_tokens)),
        scores(scratch.Alloc<float>(static_cast<size_t>(batch * length))),
        keys(scratch.Alloc<uint64_t>(static_cast<size_t>(num_threads * length))) {}

  int64_t length;
  int64_t batch;  // tokens at a time
  float* scores;
  uint64_t* keys;
};

// The positions [begin, end).
void SelectRange(uint64_t* selected, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end;) {
    const int64_t count = std::min(end - j, 64 - j % 64);
    const uint64_t ones = ~uint64_t{0} >> (64 - count);
    selected[j / 64] |= ones << (j % 64);
    j += count;
  }
}

// Ascending keys are falling scores, the lower candidate first among equals.
uint64_t Key(float score, int64_t candidate) {
  score = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score + 0.0f;  // no -0
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  const uint32_t rising = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{~rising} << 32 | static_cast<uint64_t>(candidate);
}

// The bits of one query at `position`; keys: [candidates].
void SelectBest(const IndexSelectArgs& args, const float* scores, int64_t position, uint64_t* keys,
                uint64_t* selected) {
  const int64_t block = args.block;
  const int64_t num_candidates = (position + 1) / block;
  std::fill_n(selected, position / 64 + 1, uint64_t{0});
  if (num_candidates <= args.top_k) {
    SelectRange(selected, 0, position + 1);
    return;
  }
  for (int64_t i = 0; i < num_candidates; ++i) keys[i] = Key(scores[(i + 1) * block - 1], i);
  std::nth_element(keys, keys + args.top_k, keys + num_candidates);
  for (int64_t i = 0; i < args.top_k; ++i) {
    const int64_t candidate = static_cast<int64_t>(keys[i] & 0xFFFFFFFFu);
    SelectRange(selected, candidate * block, (candidate + 1) * block);
  }
  SelectRange(selected, num_candidates * block, position + 1);
}

}  // namespace

// Tasks are pieces of a sequence x one KV head. They differ in length; the longest last would leave
// a thread waiting, so late tokens go first.
void CpuAttention(const PackedKernels& kernels, const AttentionArgs& args, ThreadPool& pool,
                  Scratch& scratch) {
  const FloatOps& floats = *kernels.floats;
  const bool plain = IsPlain(args.layout);
  const ScratchScope scope(scratch);
  const std::vector<SequencePlan>& sequences = args.plan->sequences;
  const int64_t num_kv_heads = args.layout.num_kv_heads;
  const int64_t heads = args.num_heads / num_kv_heads;
  const int64_t items = ItemsPerTask(args, pool.num_threads());
  int64_t num_pieces = 0;
  for (const SequencePlan& sequence : sequences) {
    num_pieces += DivideUp(sequence.num_tokens * heads, items);
  }
  const int64_t work_floats = AttentionWork(floats, kernels.integers, args, items);
  float* work = scratch.Alloc<float>(static_cast<size_t>(work_floats * pool.num_threads()));
  const int64_t num_tasks = num_pieces * num_kv_heads;
  ForTasks(pool, num_tasks, [&](int64_t i, int thread) {
    const int64_t task = num_tasks - 1 - i;
    int64_t piece = task / num_kv_heads;
    for (const SequencePlan& sequence : sequences) {
      const int64_t num_items = sequence.num_tokens * heads;
      const int64_t pieces = DivideUp(num_items, items);
      if (piece < pieces) {
        const int64_t begin = piece * items;
        const int64_t end = std::min(begin + items, num_items);
        const int kv_head = static_cast<int>(task % num_kv_heads);
        float* own = work + thread * work_floats;
        if (plain) {
          floats.attention(args, sequence, begin, end, kv_head, own);
        } else {
          floats.packed_attention(args, kernels, sequence, begin, end, kv_head, own);
        }
        return;
      }
      piece -= pieces;
    }
  });
}

// Tokens in batches: first the scores of all, in tasks of a token x some tiles, then the choices.
void CpuIndexSelect(const FloatOps& floats, const IndexSelectArgs& args, ThreadPool& pool,
                    Scratch& scratch) {
  for (const SequencePlan& sequence : args.plan->sequences) {
    const ScratchScope scope(scratch);
    const SelectBuffers buffers(sequence, pool.num_threads(), scratch);
    const int64_t length = buffers.length;
    const int64_t batch = buffers.batch;
    const int64_t num_tiles = length / kPageTokens;
    const int64_t pieces = DivideUp(num_tiles, kScoreTiles);
    float* scores = buffers.scores;
    uint64_t* keys = buffers.keys;
    for (int64_t first = 0; first < sequence.num_tokens; first += batch) {
      const int64_t count = std::min(batch, sequence.num_tokens - first);
      ForTasks(pool, count * pieces, [&](int64_t task, int) {
        const int64_t i = task / pieces;
        const int64_t position = sequence.start_position + first + i;
        if ((position + 1) / args.block <= args.top_k) return;  // all are selected
        const int64_t tile = task % pieces * kScoreTiles;
        const int64_t tile_end = std::min(tile + kScoreTiles, position / kPageTokens + 1);
        floats.index_scores(args, sequence, sequence.first_token + first + i, tile, tile_end,
                            scores + i * length);
      });
      ForTasks(pool, count, [&](int64_t i, int thread) {
        const int64_t token = sequence.first_token + first + i;
        SelectBest(args, scores + i * length, sequence.start_position + first + i,
                   keys + thread * length, args.selected + token * args.selected_stride);
      });
    }
  }
}

void ReserveAttention(const FloatOps& floats, bool integers, const AttentionArgs& args,
                      int num_threads, Scratch& scratch) {
  const ScratchScope scope(scratch);
  const int64_t work_floats =
      AttentionWork(floats, integers, args, ItemsPerTask(args, num_threads));
  scratch.Alloc<float>(static_cast<size_t>(work_floats * num_threads));
}

void ReserveIndexSelect(const IndexSelectArgs& args, int num_threads, Scratch& scratch) {
  for (const SequencePlan& sequence : args.plan->sequences) {
    const ScratchScope scope(scratch);
    const SelectBuffers buffers(sequence, num_threads, scratch);
    static_cast<void>(buffers);
  }
}

}  // namespace tq
