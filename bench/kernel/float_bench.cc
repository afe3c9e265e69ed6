// Times the float kernels of one instruction set on one thread: float_bench [avx512|avx2|neon].
// Processor time of the thread, so that neighbours that take its core do not count.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include "backend/cpu/kernels/float_ops.h"
#include "codec/hadamard.h"

namespace tq {
namespace {

struct Free {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{4096}); }
};
using Bytes = std::unique_ptr<std::byte[], Free>;

Bytes Allocate(int64_t bytes) {
  Bytes p(static_cast<std::byte*>(
      ::operator new[](static_cast<size_t>(bytes), std::align_val_t{4096})));
  std::memset(p.get(), 0x3C, static_cast<size_t>(bytes));  // small positive numbers in every type
  return p;
}

double Now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Timing {
  double best;
  double median;
};

template <class Body>
Timing Time(int runs, const Body& body) {
  body();
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const double start = Now();
    body();
    seconds.push_back(Now() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds.front(), seconds[seconds.size() / 2]};
}

void Report(const char* what, const Timing& t, double work, const char* unit) {
  std::printf("%-44s best %9.2f us  %8.2f %s   median %8.2f %s\n", what, t.best * 1e6,
              work / t.best * 1e-9, unit, work / t.median * 1e-9, unit);
}

const char* Name(FloatType type) {
  return type == FloatType::kF32 ? "f32" : type == FloatType::kF16 ? "f16" : "bf16";
}

void ReadBandwidth() {
  const int64_t bytes = int64_t{256} << 20;
  const Bytes memory = Allocate(bytes);
  uint64_t sink = 0;
  const Timing t = Time(10, [&] {
    const uint64_t* p = reinterpret_cast<const uint64_t*>(memory.get());
    uint64_t sum[8] = {};
    for (int64_t i = 0; i < bytes / 8; i += 8) {
      for (int j = 0; j < 8; ++j) sum[j] += p[i + j];
    }
    sink += std::accumulate(sum, sum + 8, uint64_t{0});
  });
  Report(sink == 1 ? "read 256 MiB " : "read 256 MiB", t, static_cast<double>(bytes), "GB/s");
}

void BenchMatMul(const FloatOps& ops, FloatType type, int64_t rows, int64_t cols, int64_t tokens) {
  const int64_t bytes = rows / kTileRows * FloatTileBytes(type, cols);
  const Bytes tiles = Allocate(bytes);
  std::vector<float> x(static_cast<size_t>(tokens * cols), 0.5f);
  std::vector<float> y(static_cast<size_t>(tokens * rows));
  const FloatMatMulArgs args = {.type = type,
                                .tiles = tiles.get(),
                                .num_rows = rows,
                                .num_cols = cols,
                                .x = x.data(),
                                .ldx = cols,
                                .num_tokens = tokens,
                                .bias = nullptr,
                                .y = y.data(),
                                .ldy = rows};
  const Timing t = Time(10, [&] { ops.float_matmul(args, 0, rows / kTileRows); });
  char what[80];
  std::snprintf(what, sizeof(what), "matmul %s %lld x %lld, M = %lld", Name(type),
                static_cast<long long>(rows), static_cast<long long>(cols),
                static_cast<long long>(tokens));
  Report(what, t, static_cast<double>(bytes), "GB/s");
  Report("", t, 2.0 * static_cast<double>(rows * cols * tokens), "GFLOP/s");
}

void BenchAttention(const FloatOps& ops, const KvLayout& layout, int heads, int64_t context,
                    int64_t tokens) {
  const int64_t num_pages = (context + 63) / 64;
  const Bytes pages = Allocate(num_pages * layout.page_bytes());
  SequencePlan sequence;
  sequence.num_tokens = tokens;
  sequence.start_position = context - tokens;
  sequence.pages.resize(static_cast<size_t>(num_pages));
  std::iota(sequence.pages.begin(), sequence.pages.end(), 0);
  std::vector<float> q(static_cast<size_t>(tokens * heads * layout.head_dim), 0.01f);
  std::vector<float> out(static_cast<size_t>(tokens * heads * layout.v_head_dim));
  AttentionArgs args{};
  args.layout = layout;
  args.pages = pages.get();
  args.q = q.data();
  args.out = out.data();
  args.num_heads = heads;
  args.scale = 0.1f;
  const int64_t items = tokens * heads / layout.num_kv_heads;
  const Bytes work = Allocate(ops.attention_work(args, items) * 4);
  const Timing t = Time(10, [&] {
    for (int g = 0; g < layout.num_kv_heads; ++g) {
      ops.attention(args, sequence, 0, items, g, reinterpret_cast<float*>(work.get()));
    }
  });
  char what[80];
  std::snprintf(what, sizeof(what), "attention %s%s H %d G %d D %d L %lld, M = %lld",
                layout.k_format() == KvFormat::kF16 ? "f16" : "f32",
                layout.values == KvValues::kKeyPrefix ? " v in k" : "", heads, layout.num_kv_heads,
                layout.head_dim, static_cast<long long>(context), static_cast<long long>(tokens));
  Report(what, t, static_cast<double>(num_pages * layout.page_bytes()), "GB/s");
  Report(
      "", t,
      2.0 * static_cast<double>(context * tokens * heads) * (layout.head_dim + layout.v_head_dim),
      "GFLOP/s");
}

// One layer's delta rule: 32 heads of 128 x 128.
void BenchDeltaRule(const FloatOps& ops, bool per_key, int64_t tokens) {
  constexpr int kHeads = 32;
  constexpr int kDim = 128;
  StepPlan plan;
  plan.sequences.emplace_back();
  plan.sequences[0].num_tokens = tokens;
  plan.sequences[0].start_position = 1;
  const size_t values = static_cast<size_t>(tokens * kHeads * kDim);
  const std::vector<float> q(values, 0.05f), v(values, 0.3f), decay(values, -0.1f);
  const std::vector<float> beta(static_cast<size_t>(tokens * kHeads), 0.5f);
  std::vector<float> out(values), state(size_t{kHeads} * kDim * kDim);
  const DeltaRuleArgs args = {&plan,       q.data(),   q.data(),         v.data(), decay.data(),
                              beta.data(), out.data(), kHeads,           kHeads,   kDim,
                              kDim,        per_key,    {state.data(), 0}};
  const Timing t = Time(10, [&] {
    for (int head = 0; head < kHeads; ++head) ops.delta_rule(args, plan.sequences[0], head);
  });
  char what[80];
  std::snprintf(what, sizeof(what), "delta rule 32 x 128 x 128%s, M = %lld",
                per_key ? " per key" : "", static_cast<long long>(tokens));
  Report(what, t, static_cast<double>(tokens) * 1e9, "tokens/s");
}

// One layer's Mamba2 scan: 64 heads of 64 x 128.
void BenchMambaScan(const FloatOps& ops, int64_t tokens) {
  constexpr int kHeads = 64;
  constexpr int kDim = 64;
  constexpr int kState = 128;
  StepPlan plan;
  plan.sequences.emplace_back();
  plan.sequences[0].num_tokens = tokens;
  plan.sequences[0].start_position = 1;
  const std::vector<float> x(static_cast<size_t>(tokens * kHeads * kDim), 0.3f);
  const std::vector<float> b(static_cast<size_t>(tokens * kState), 0.1f);
  const std::vector<float> dt(static_cast<size_t>(tokens * kHeads), 0.1f), a(kHeads, 1.0f);
  std::vector<float> out(x.size()), state(size_t{kHeads} * kDim * kState);
  const MambaScanArgs args = {&plan,    x.data(), b.data(),         b.data(), dt.data(),
                              a.data(), a.data(), out.data(),       kHeads,   kDim,
                              1,        kState,   {state.data(), 0}};
  const Timing t = Time(10, [&] {
    for (int head = 0; head < kHeads; ++head) ops.mamba_scan(args, plan.sequences[0], head);
  });
  char what[80];
  std::snprintf(what, sizeof(what), "mamba scan 64 x 64 x 128, M = %lld",
                static_cast<long long>(tokens));
  Report(what, t, static_cast<double>(tokens) * 1e9, "tokens/s");
}

void BenchRotate(const FloatOps& ops, int64_t n) {
  const HadamardBlock block = HadamardBlockFor(n);
  std::vector<float> x(static_cast<size_t>(n), 0.5f), signs(x.size(), 1.0f);
  std::vector<int8_t> q(x.size());
  std::vector<float> sx(x.size());
  const Timing rotate = Time(1000, [&] {
    std::fill(x.begin(), x.end(), 0.5f);
    ops.rotate_row(x.data(), signs.data(), n, block.m, block.pow2);
  });
  const Timing quantize =
      Time(1000, [&] { ops.quantize_row(x.data(), n, 256, q.data(), sx.data()); });
  char what[80];
  std::snprintf(what, sizeof(what), "rotate %lld (m = %d)", static_cast<long long>(n), block.m);
  Report(what, rotate, static_cast<double>(n), "Gelem/s");
  Report("  quantize", quantize, static_cast<double>(n), "Gelem/s");
}

void BenchSmall(const FloatOps& ops) {
  const int64_t n = 4096;
  std::vector<float> x(n, 0.5f), w(n, 1.0f), out(n);
  Report("rms_norm 4096",
         Time(1000, [&] { ops.rms_norm_row(x.data(), w.data(), false, 1e-6f, n, out.data()); }), n,
         "Gelem/s");
  Report("glu_silu 4096",
         Time(1000,
              [&] {
                ops.glu({Activation::kSilu, x.data(), w.data(), out.data(), n}, 0, n);
              }),
         n, "Gelem/s");
  std::vector<float> tile(16 * n), rows(16 * n, 1.0f);
  Report("transpose16 4096", Time(100, [&] { ops.transpose16(rows.data(), n, n, tile.data()); }),
         16.0 * n, "Gelem/s");
}

int Main(int argc, char** argv) {
  const std::vector<Isa> isas = DetectIsas();
  std::optional<Isa> isa = isas.empty() ? std::nullopt : std::optional<Isa>(isas.front());
  if (argc > 1) isa = IsaFromName(argv[1]);
  if (!isa.has_value() || std::find(isas.begin(), isas.end(), *isa) == isas.end()) {
    std::fprintf(stderr, "usage: float_bench [avx512|avx2|neon], one that this machine has\n");
    return 2;
  }
  const FloatOps& ops = GetFloatOps(*isa);
  std::printf("isa %s, one thread\n", IsaName(*isa));
  ReadBandwidth();
  for (const FloatType type : {FloatType::kBf16, FloatType::kF16, FloatType::kF32}) {
    const int64_t cols = type == FloatType::kF32 ? 2048 : 4096;
    BenchMatMul(ops, type, 32768, cols, 1);
    for (const int64_t tokens : {4, 8, 32, 128}) BenchMatMul(ops, type, 4096, 4096, tokens);
  }
  for (const KvFormat type : {KvFormat::kF16, KvFormat::kF32}) {
    const KvLayout heads = {type, 8, 128, 128};
    BenchAttention(ops, heads, 32, 4096, 1);
    BenchAttention(ops, heads, 8, 4096, 1);
    BenchAttention(ops, heads, 32, 4096, 64);
    const KvLayout latent = {type, 1, 576, 512, KvValues::kKeyPrefix};
    BenchAttention(ops, latent, 128, 4096, 1);
    BenchAttention(ops, latent, 128, 4096, 8);
  }
  for (const int64_t tokens : {1, 512}) {
    for (const bool per_key : {false, true}) BenchDeltaRule(ops, per_key, tokens);
    BenchMambaScan(ops, tokens);
  }
  for (const int64_t n : {1024, 4096, 11008, 3072, 2560, 14336}) BenchRotate(ops, n);
  BenchSmall(ops);
  return 0;
}

}  // namespace
}  // namespace tq

int main(int argc, char** argv) { return tq::Main(argc, argv); }
