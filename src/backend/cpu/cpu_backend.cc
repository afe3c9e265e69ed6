#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "backend/cpu/cpu_matmul.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/isa.h"
#include "backend/matrix_check.h"
#include "base/threads.h"

namespace tq {
namespace {

// Waking the other threads costs about as much as this many elementary operations.
constexpr int64_t kParallelCost = 16384;
// Query tokens that one attention task handles.
constexpr int64_t kAttentionTokens = 16;

class CpuBackend : public Backend {
 public:
  CpuBackend(Isa isa, const BackendOptions& options)
      : isa_(isa),
        activations_(options.activations),
        kernels_{GetFloatOps(isa), GetIntOps(isa)},
        floats_(kernels_.floats),
        pool_(options.num_threads) {}

  std::string_view name() const override { return "cpu"; }
  std::string_view isa() const override { return IsaName(isa_); }
  ActivationMode activations() const override { return activations_; }
  int num_threads() const override { return pool_.num_threads(); }

  Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) override {
    TQ_RETURN_IF_ERROR(CheckStoredMatrix(stored));
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<CpuWeight> weight,
                        CpuWeight::Make(stored, activations_, arena_, pool_));
    return std::unique_ptr<Weight>(std::move(weight));
  }

  void Embed(const EmbedArgs& args) override {
    const auto& table = static_cast<const CpuWeight&>(*args.table);
    ForEach(static_cast<int64_t>(args.ids.size()), table.cols(), [&](int64_t token) {
      float* out = args.out + token * table.cols();
      if (table.layout() == CpuWeight::Layout::kFloatTiles && !table.rotated()) {
        floats_.embed_row(table.float_type(), table.tiles(), table.cols(), args.ids[token],
                          args.scale, out);
      } else {
        EmbedCodedRow(table, args.ids[token], args.scale, out);
      }
    });
  }

  void MatMul(std::span<const MatMulArgs> args, Scratch& scratch) override {
    CpuMatMul(kernels_, args, pool_, scratch);
  }

  void RmsNorm(const RmsNormArgs& args) override {
    ForEach(args.num_rows, args.n, [&](int64_t row) {
      floats_.rms_norm_row(args.x + row * args.n, args.w, args.plus_one, args.eps, args.n,
                           args.out + row * args.n);
    });
  }

  void Rope(const RopeArgs& args) override {
    const int64_t half = args.rotary_dim / 2;
    ForEach(args.num_tokens, int64_t{args.num_heads} * args.rotary_dim, [&](int64_t token) {
      for (int64_t head = 0; head < args.num_heads; ++head) {
        floats_.rope_head(args.x + (token * args.num_heads + head) * args.head_dim, args.rotary_dim,
                          args.cos + token * half, args.sin + token * half);
      }
    });
  }

  void KvAppend(const KvAppendArgs& args) override {
    for (const SequencePlan& sequence : args.plan->sequences) {
      ForEach(sequence.num_tokens, int64_t{2} * args.layout.num_kv_heads * args.layout.head_dim,
              [&](int64_t i) { AppendToken(args, sequence, i); });
    }
  }

  void Attention(const AttentionArgs& args, Scratch& scratch) override;

  void Glu(const GluArgs& args) override {
    const auto glu =
        args.activation == Activation::kSilu ? floats_.glu_silu : floats_.glu_gelu_tanh;
    ForRange(args.n, 8, [&](int64_t begin, int64_t end) {
      glu(args.gate + begin, args.up + begin, args.out + begin, end - begin);
    });
  }

  void Add(const AddArgs& args) override {
    ForRange(args.n, 1, [&](int64_t begin, int64_t end) {
      floats_.add(args.x + begin, args.y + begin, end - begin);
    });
  }

  void Softcap(const SoftcapArgs& args) override {
    ForRange(args.n, 8, [&](int64_t begin, int64_t end) {
      floats_.softcap(args.x + begin, args.cap, end - begin);
    });
  }

 private:
  // body(i) for i < n; `cost` in elementary operations each.
  template <typename Body>
  void ForEach(int64_t n, int64_t cost, const Body& body) {
    const int64_t grain = n * cost < kParallelCost ? std::max<int64_t>(n, 1) : 1;
    pool_.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }

  // body(begin, end) over elements, in ranges of whole cache lines.
  template <typename Body>
  void ForRange(int64_t n, int64_t cost, const Body& body) {
    const int64_t grain = n * cost < kParallelCost ? std::max<int64_t>(n, 1) : 64;
    pool_.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
  }

  static void EmbedCodedRow(const CpuWeight& table, int64_t row, float scale, float* out) {
    table.DecodeRow(row, out);
    const size_t n = static_cast<size_t>(table.cols());
    if (table.rotated()) {
      HadamardInverse({out, n});
      for (size_t i = 0; i < n; ++i) out[i] = out[i] * table.signs()[i];
    }
    for (size_t i = 0; i < n; ++i) out[i] = out[i] * scale;
  }

  void AppendToken(const KvAppendArgs& args, const SequencePlan& sequence, int64_t i) const {
    const KvLayout& layout = args.layout;
    const int64_t position = sequence.start_position + i;
    std::byte* page = args.pages + sequence.pages[position / kPageTokens] * layout.page_bytes();
    for (int64_t g = 0; g < layout.num_kv_heads; ++g) {
      std::byte* k_tile = page + 2 * g * layout.tile_bytes();
      const int64_t row = ((sequence.first_token + i) * layout.num_kv_heads + g) * layout.head_dim;
      floats_.kv_append(layout.type == KvType::kF16, layout.head_dim, k_tile,
                        k_tile + layout.tile_bytes(), position % kPageTokens, args.k + row,
                        args.v + row);
    }
  }

  Isa isa_;
  ActivationMode activations_;
  CpuKernels kernels_;
  const FloatOps& floats_;
  ThreadPool pool_;
  WeightArena arena_;
};

AttentionTask MakeTask(const AttentionArgs& args, const SequencePlan& sequence) {
  const int64_t row = sequence.first_token * args.num_heads * args.layout.head_dim;
  return {.f16 = args.layout.type == KvType::kF16,
          .pages = args.pages,
          .page_bytes = args.layout.page_bytes(),
          .page_table = sequence.pages.data(),
          .start_position = sequence.start_position,
          .num_heads = args.num_heads,
          .num_kv_heads = args.layout.num_kv_heads,
          .head_dim = args.layout.head_dim,
          .scale = args.scale,
          .window = args.window,
          .q = args.q + row,
          .out = args.out + row};
}

// Tasks are pieces of a sequence x one KV head. They differ in length, so threads take the next one
// when they are done; longest last would leave a thread waiting, so late tokens go first.
void CpuBackend::Attention(const AttentionArgs& args, Scratch& scratch) {
  const ScratchScope scope(scratch);
  const std::vector<SequencePlan>& sequences = args.plan->sequences;
  int64_t num_pieces = 0;
  int64_t work_floats = 0;
  for (const SequencePlan& sequence : sequences) {
    num_pieces += (sequence.num_tokens + kAttentionTokens - 1) / kAttentionTokens;
    work_floats =
        std::max(work_floats, floats_.attention_work(MakeTask(args, sequence), kAttentionTokens));
  }
  const int num_threads = pool_.num_threads();
  work_floats = (work_floats + 15) / 16 * 16;
  float* work = scratch.Alloc<float>(static_cast<size_t>(work_floats * num_threads));

  const int64_t num_tasks = num_pieces * args.layout.num_kv_heads;
  std::atomic<int64_t> next{0};
  pool_.ParallelFor(
      std::min<int64_t>(num_threads, num_tasks), 1, [&](int64_t, int64_t, int thread) {
        for (int64_t i = next.fetch_add(1); i < num_tasks; i = next.fetch_add(1)) {
          const int64_t task = num_tasks - 1 - i;
          int64_t piece = task / args.layout.num_kv_heads;
          for (const SequencePlan& sequence : sequences) {
            const int64_t pieces = (sequence.num_tokens + kAttentionTokens - 1) / kAttentionTokens;
            if (piece >= pieces) {
              piece -= pieces;
              continue;
            }
            const int64_t begin = piece * kAttentionTokens;
            floats_.attention(MakeTask(args, sequence), begin,
                              std::min(begin + kAttentionTokens, sequence.num_tokens),
                              static_cast<int>(task % args.layout.num_kv_heads),
                              work + thread * work_floats);
            break;
          }
        }
      });
}

}  // namespace

Result<std::unique_ptr<Backend>> MakeCpuBackend(const BackendOptions& options) {
  const std::vector<Isa> isas = DetectIsas();
  for (const Isa isa : isas) {
    if (options.isa.empty() || options.isa == IsaName(isa)) {
      return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(isa, options));
    }
  }
  return InvalidArgument("expected an instruction set of this machine, found '" + options.isa +
                         "': leave it out for the best one");
}

std::vector<std::string> CpuIsas() {
  std::vector<std::string> names;
  for (const Isa isa : DetectIsas()) names.emplace_back(IsaName(isa));
  return names;
}

}  // namespace tq
