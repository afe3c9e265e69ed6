#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_attention.h"
#include "backend/cpu/cpu_kv_append.h"
#include "backend/cpu/cpu_matmul.h"
#include "backend/cpu/cpu_sizing.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/isa.h"
#include "base/task_queue.h"
#include "backend/matrix_check.h"
#include "backend/route.h"
#include "base/threads.h"

namespace tq {
namespace {

// Waking the other threads costs about as much as this many elementary operations.
constexpr int64_t kParallelCost = 16384;
// Channels of a convolution that one task handles.
constexpr int64_t kConvChannels = 128;

class CpuBackend : public Backend {
 public:
  CpuBackend(Isa isa, const BackendOptions& options)
      : isa_(isa),
        activations_(options.activations),
        kernels_{GetFloatOps(isa), GetIntOps(isa)},
        floats_(kernels_.floats),
        pool_(options.num_threads),
        cursors_(static_cast<size_t>(pool_.num_threads())),
        append_work_(static_cast<size_t>(pool_.num_threads())) {}

  std::string_view name() const override { return "cpu"; }
  std::string_view isa() const override { return IsaName(isa_); }
  ActivationMode activations() const override { return activations_; }
  int num_threads() const override { return pool_.num_threads(); }

  std::unique_ptr<Backend> Sizing() const override {
    return MakeCpuSizing(isa_, activations_, num_threads());
  }

  Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) override {
    TQ_RETURN_IF_ERROR(CheckStoredMatrix(stored));
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<CpuWeight> weight,
                        CpuWeight::Make(stored, activations_, floats_, arena_, pool_));
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
    CpuMatMul(kernels_, args, pool_, cursors_, scratch);
  }

  void RmsNorm(const RmsNormArgs& args) override {
    ForEach(args.num_rows, args.n, [&](int64_t row) {
      const float* w = args.w == nullptr ? nullptr : args.w + row % args.w_rows * args.n;
      floats_.rms_norm_row(args.x + row * args.n, w, args.plus_one, args.eps, args.n,
                           args.out + row * args.n);
    });
  }

  void LayerNorm(const LayerNormArgs& args) override {
    ForEach(args.num_rows, 2 * args.n, [&](int64_t row) { floats_.layer_norm_row(args, row); });
  }

  void Rope(const RopeArgs& args) override {
    const int64_t half = args.rotary_dim / 2;
    const auto rotate = args.interleaved ? floats_.rope_head_interleaved : floats_.rope_head;
    ForEach(args.num_tokens, int64_t{args.num_heads} * args.rotary_dim, [&](int64_t token) {
      for (int64_t head = 0; head < args.num_heads; ++head) {
        float* x = args.x + (token * args.num_heads + head) * args.head_dim + args.offset;
        rotate(x, args.rotary_dim, args.cos + token * half, args.sin + token * half);
      }
    });
  }

  void KvAppend(const KvAppendArgs& args) override {
    CpuKvAppend({&floats_, &kernels_.ints, false, &rotations_.OfKeys(args.layout),
                 &rotations_.OfValues(args.layout)},
                args, pool_, append_work_);
  }

  void Attention(const AttentionArgs& args, Scratch& scratch) override {
    CpuAttention({&floats_, &kernels_.ints, activations_ == ActivationMode::kInt8,
                  &rotations_.OfKeys(args.layout), &rotations_.OfValues(args.layout)},
                 args, pool_, scratch);
  }
  void IndexSelect(const IndexSelectArgs& args, Scratch& scratch) override {
    CpuIndexSelect(floats_, args, pool_, scratch);
  }

  void CausalConv(const CausalConvArgs& args) override {
    const int64_t blocks = (args.channels + kConvChannels - 1) / kConvChannels;
    ForSequences(*args.plan, blocks, args.kernel * kConvChannels,
                 [&](const SequencePlan& sequence, int64_t block) {
                   floats_.causal_conv(args, sequence, block * kConvChannels,
                                       std::min((block + 1) * kConvChannels, args.channels));
                 });
  }
  void DeltaRule(const DeltaRuleArgs& args) override {
    ForSequences(*args.plan, args.num_v_heads, int64_t{args.k_dim} * args.v_dim,
                 [&](const SequencePlan& sequence, int64_t head) {
                   floats_.delta_rule(args, sequence, head);
                 });
  }
  void MambaScan(const MambaScanArgs& args) override {
    ForSequences(*args.plan, args.num_heads, int64_t{args.state_size} * args.head_dim,
                 [&](const SequencePlan& sequence, int64_t head) {
                   floats_.mamba_scan(args, sequence, head);
                 });
  }

  void Route(const RouteArgs& args) override {
    const int64_t work = RouteWork(args.rule);
    router_work_.resize(static_cast<size_t>(work * pool_.num_threads()));
    const int64_t cost = int64_t{args.rule.num_experts} * (args.rule.top_k + 16);
    const int64_t grain = args.num_tokens * cost < kParallelCost ? args.num_tokens : 1;
    pool_.ParallelFor(args.num_tokens, std::max<int64_t>(grain, 1),
                      [&](int64_t begin, int64_t end, int thread) {
                        for (int64_t token = begin; token < end; ++token) {
                          RouteToken(args, token, router_work_.data() + thread * work);
                        }
                      });
  }
  void MoeCombine(const MoeCombineArgs& args) override {
    ForEach(args.num_tokens, args.top_k * args.n,
            [&](int64_t token) { floats_.moe_combine(args, token); });
  }

  void Glu(const GluArgs& args) override {
    ForRange(args.n, 8, [&](int64_t begin, int64_t end) { floats_.glu(args, begin, end); });
  }
  void Map(const MapArgs& args) override {
    ForEach(args.num_rows, args.n * (args.fn == MapFn::kIdentity ? 1 : 8),
            [&](int64_t row) { floats_.map_row(args, row); });
  }
  void ScaleRows(const ScaleRowsArgs& args) override {
    ForEach(args.num_rows, args.n, [&](int64_t row) {
      floats_.scale_row(args.x + row * args.n, args.factors[row], args.n, args.out + row * args.n);
    });
  }
  void CopyRows(const CopyRowsArgs& args) override {
    ForEach(args.num_rows, args.n, [&](int64_t row) {
      const int64_t from = args.index == nullptr ? row : args.index[row];
      std::memcpy(args.out + row * args.out_stride, args.x + from * args.x_stride,
                  static_cast<size_t>(args.n) * sizeof(float));
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

  void ResidualMix(const ResidualMixArgs& args) override {
    ForEach(args.num_tokens, 3 * args.n * static_cast<int64_t>(args.candidates.size()),
            [&](int64_t token) { floats_.residual_mix(args, token); });
  }
  void StreamMean(const StreamMeanArgs& args) override {
    ForEach(args.num_tokens, args.num_streams * args.n,
            [&](int64_t token) { floats_.stream_mean(args, token); });
  }
  void StreamInject(const StreamInjectArgs& args) override {
    ForEach(args.num_tokens, args.num_streams * args.n,
            [&](int64_t token) { floats_.stream_inject(args, token); });
  }
  void StreamGate(const StreamGateArgs& args) override {
    ForEach(args.num_tokens, 2 * args.num_streams * args.n,
            [&](int64_t token) { floats_.stream_gate(args, token); });
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

  // body(sequence, part) for the parts of every sequence; `cost` of a token's part.
  template <typename Body>
  void ForSequences(const StepPlan& plan, int64_t parts, int64_t cost, const Body& body) {
    const std::vector<SequencePlan>& sequences = plan.sequences;
    const int64_t num_tasks = static_cast<int64_t>(sequences.size()) * parts;
    if (plan.num_tokens() * parts * cost < kParallelCost) {
      for (int64_t i = 0; i < num_tasks; ++i) body(sequences[i / parts], i % parts);
      return;
    }
    ForTasks(pool_, num_tasks, [&](int64_t i, int) { body(sequences[i / parts], i % parts); });
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

  Isa isa_;
  ActivationMode activations_;
  CpuKernels kernels_;
  const FloatOps& floats_;
  ThreadPool pool_;
  std::vector<RunCursor> cursors_;
  WeightArena arena_;
  std::vector<float> router_work_;
  KvRotations rotations_;
  std::vector<KvRowWork> append_work_;
};

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
