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

void BenchAttention(const FloatOps& ops, bool f16, int heads, int kv_heads, int head_dim,
                    int64_t context, int64_t tokens) {
  const int64_t tile_bytes = int64_t{64} * head_dim * (f16 ? 2 : 4);
  const int64_t page_bytes = 2 * tile_bytes * kv_heads;
  const int64_t num_pages = (context + 63) / 64;
  const Bytes pages = Allocate(num_pages * page_bytes);
  std::vector<int32_t> table(static_cast<size_t>(num_pages));
  std::iota(table.begin(), table.end(), 0);
  std::vector<float> q(static_cast<size_t>(tokens * heads * head_dim), 0.01f), out(q.size());
  const AttentionTask task = {.f16 = f16,
                              .pages = pages.get(),
                              .page_bytes = page_bytes,
                              .page_table = table.data(),
                              .start_position = context - tokens,
                              .num_heads = heads,
                              .num_kv_heads = kv_heads,
                              .head_dim = head_dim,
                              .scale = 0.1f,
                              .window = 0,
                              .q = q.data(),
                              .out = out.data()};
  const Bytes work = Allocate(ops.attention_work(task, tokens) * 4);
  const Timing t = Time(10, [&] {
    for (int g = 0; g < kv_heads; ++g) {
      ops.attention(task, 0, tokens, g, reinterpret_cast<float*>(work.get()));
    }
  });
  char what[80];
  std::snprintf(what, sizeof(what), "attention %s H %d G %d D %d L %lld, M = %lld",
                f16 ? "f16" : "f32", heads, kv_heads, head_dim, static_cast<long long>(context),
                static_cast<long long>(tokens));
  Report(what, t, static_cast<double>(num_pages * page_bytes), "GB/s");
  Report("", t, 4.0 * static_cast<double>(context * tokens * heads * head_dim), "GFLOP/s");
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
  Report("glu_silu 4096", Time(1000, [&] { ops.glu_silu(x.data(), w.data(), out.data(), n); }), n,
         "Gelem/s");
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
  for (const bool f16 : {true, false}) {
    BenchAttention(ops, f16, 32, 8, 128, 4096, 1);
    BenchAttention(ops, f16, 8, 8, 128, 4096, 1);
    BenchAttention(ops, f16, 32, 8, 128, 4096, 64);
  }
  for (const int64_t n : {1024, 4096, 11008, 3072, 2560, 14336}) BenchRotate(ops, n);
  BenchSmall(ops);
  return 0;
}

}  // namespace
}  // namespace tq

int main(int argc, char** argv) { return tq::Main(argc, argv); }
