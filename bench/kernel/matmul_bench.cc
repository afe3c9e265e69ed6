// Matmul speed of every backend choice of this machine. A few tokens: many matrices in turn, beyond
// any cache, so that weights come from memory as in a model; each row states its share of the read
// bandwidth measured in the same way around it. Many tokens: multiply-adds per second.
//   matmul_bench --benchmark_filter='avx512/.*/M:1/'
// "fast" figures are those of the fastest tenth of the calls: on a busy machine the mean says
// little.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "backend/backend.h"
#include "backend/test_matrix.h"
#include "base/threads.h"

namespace tq {
namespace {

constexpr int64_t kColumns = 4096;
constexpr int64_t kMatrixBytes = int64_t{16} << 20;
constexpr int64_t kNumMatrices = 48;
constexpr int64_t kPrefillRows = 4096;
constexpr int64_t kPrefillTokens = 256;

double Seconds(const std::chrono::steady_clock::time_point& begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double FastTenth(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 10];
}

// Bytes per second that `threads` threads read from 2 MiB pages, in pieces of kMatrixBytes.
double ReadBandwidth(int threads) {
  static const Buffer buffer = [] {
    Buffer memory =
        std::move(Buffer::Allocate(kNumMatrices * kMatrixBytes, /*huge_pages=*/true)).value();
    for (int64_t i = 0; i < kNumMatrices * kMatrixBytes; i += 4096) memory.data()[i] = std::byte{1};
    return memory;
  }();
  ThreadPool pool(threads);
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);
  std::vector<double> seconds;
  for (int64_t piece = 0; piece < 2 * kNumMatrices; ++piece) {
    const auto* words =
        reinterpret_cast<const uint64_t*>(buffer.data() + piece % kNumMatrices * kMatrixBytes);
    const auto begin = std::chrono::steady_clock::now();
    pool.ParallelFor(kMatrixBytes / 64, 1, [&](int64_t first, int64_t last, int thread) {
      uint64_t sum[8] = {};
      for (int64_t line = first; line < last; ++line) {
        __builtin_prefetch(words + line * 8 + 512);
        for (int i = 0; i < 8; ++i) sum[i] += words[line * 8 + i];
      }
      for (int i = 0; i < 8; ++i) sums[thread * 8] += sum[i];
    });
    seconds.push_back(Seconds(begin));
  }
  benchmark::DoNotOptimize(sums.data());
  return static_cast<double>(kMatrixBytes) / FastTenth(seconds);
}

struct Kind {
  const char* name;
  int width;  // TurboQuant: entries of the codebook; affine: bits
  int group;
  CodecId codec;
  double row_bytes;
};

constexpr Kind kKinds[] = {
    {"turbo2-g64", 4, 64, CodecId::kTurboQuant, kColumns / 4.0 + kColumns / 32.0},
    {"turbo3-g64", 8, 64, CodecId::kTurboQuant, kColumns * 3 / 8.0 + kColumns / 32.0},
    {"turbo4-g64", 16, 64, CodecId::kTurboQuant, kColumns / 2.0 + kColumns / 32.0},
    {"bf16", 0, 1, CodecId::kBf16, kColumns * 2.0},
    {"q4_0", 0, 32, CodecId::kQ4_0, kColumns / 32 * 18.0},
    {"q8_0", 0, 32, CodecId::kQ8_0, kColumns / 32 * 34.0},
    {"q4_k", 0, 32, CodecId::kQ4K, kColumns / 256 * 144.0},
    {"q6_k", 0, 16, CodecId::kQ6K, kColumns / 256 * 210.0},
    {"affine4-g64", 4, 64, CodecId::kAffine, kColumns / 2.0 + kColumns / 16.0},
    {"affine8-g64", 8, 64, CodecId::kAffine, kColumns + kColumns / 16.0},
    {"mxfp4", 0, 32, CodecId::kMxfp4, kColumns / 32 * 17.0},
};

TestMatrix MakeMatrix(const Kind& kind, int64_t rows) {
  if (kind.codec == CodecId::kTurboQuant) {
    return TestMatrix::Turbo(kind.width, kind.group, Transform::kHadamard, rows, kColumns, 1);
  }
  if (kind.codec == CodecId::kAffine) {
    return TestMatrix::Groups({CodecId::kAffine, kind.width, kind.group}, DType::kBf16, true, 1,
                              rows, kColumns, 1);
  }
  return TestMatrix::Block(kind.codec, rows, kColumns, 1);
}

struct Case {
  Kind kind;
  BackendChoice choice;
  int threads;
  bool prefill;
};

// The matrices of one case are kept: neighbouring rows of the table share them.
struct Prepared {
  std::string key;
  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<Weight>> weights;
};

const Prepared& Prepare(const Case& c) {
  static Prepared prepared;
  const std::string key =
      c.kind.name + c.choice.isa + std::to_string(c.threads) + (c.prefill ? "prefill" : "decode");
  if (prepared.key == key) return prepared;
  prepared.weights.clear();
  BackendOptions options;
  options.num_threads = c.threads;
  options.isa = c.choice.isa;
  prepared.backend = std::move(MakeBackend(c.choice.backend, options)).value();
  const int64_t rows =
      c.prefill ? kPrefillRows
                : static_cast<int64_t>(static_cast<double>(kMatrixBytes) / c.kind.row_bytes);
  const TestMatrix matrix = MakeMatrix(c.kind, rows);
  for (int64_t i = 0; i < (c.prefill ? 1 : kNumMatrices); ++i) {
    prepared.weights.push_back(std::move(prepared.backend->Prepare(matrix.stored())).value());
  }
  prepared.key = key;
  return prepared;
}

void MatMul(benchmark::State& state, const Case& c, int64_t num_tokens) {
  const Prepared& prepared = Prepare(c);
  const int64_t rows = prepared.weights[0]->rows();
  const std::vector<float> x = RandomFloats(num_tokens * kColumns, 1);
  std::vector<float> y(static_cast<size_t>(num_tokens * rows));
  Scratch scratch;
  const auto call = [&](size_t i) {
    const MatMulArgs args{prepared.weights[i % prepared.weights.size()].get(), x.data(), nullptr,
                          y.data(), num_tokens};
    const auto begin = std::chrono::steady_clock::now();
    prepared.backend->MatMul({&args, 1}, scratch);
    return Seconds(begin);
  };
  call(0);
  scratch.Reset();
  const double before = c.prefill ? 0 : ReadBandwidth(c.threads);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(call(seconds.size()));
    state.SetIterationTime(seconds.back());
  }
  const double fast = FastTenth(seconds);
  state.counters["fast_GMAC/s"] = static_cast<double>(rows * kColumns * num_tokens) / fast * 1e-9;
  if (c.prefill) return;
  const double bandwidth = std::max(before, ReadBandwidth(c.threads));
  const double rate = static_cast<double>(prepared.weights[0]->bytes()) / fast;
  state.counters["fast_GB/s"] = rate * 1e-9;
  state.counters["read_GB/s"] = bandwidth * 1e-9;
  state.counters["share_%"] = rate / bandwidth * 100;
}

void Register(const Case& c, int64_t num_tokens, int iterations) {
  const std::string name = c.choice.isa + "/threads:" + std::to_string(c.threads) + "/" +
                           c.kind.name + (c.prefill ? "/prefill:" : "/M:") +
                           std::to_string(num_tokens);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { MatMul(state, c, num_tokens); })
      ->UseManualTime()
      ->Iterations(iterations);
}

void RegisterAll() {
  for (const BackendChoice& choice : AvailableBackends()) {
    if (choice.backend == "ref") continue;
    for (const int threads : {1, 2}) {
      for (const Kind& kind : kKinds) {
        for (const int64_t num_tokens : {1, 2, 4, 8, 16}) {
          Register({kind, choice, threads, /*prefill=*/false}, num_tokens, 2 * kNumMatrices);
        }
        Register({kind, choice, threads, /*prefill=*/true}, kPrefillTokens, 20);
      }
    }
  }
}

}  // namespace
}  // namespace tq

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  tq::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
