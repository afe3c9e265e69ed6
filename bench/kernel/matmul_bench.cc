// Matmul speed of every backend choice of this machine, in every format, at the shapes of real
// models. A few tokens: many matrices in turn, beyond any cache, so that weights come from memory
// as in a model; each row states its share of the read bandwidth measured in the same way around
// it. Many tokens: multiply-adds per second, and the share of what the instruction does from
// registers. Results are compared with the ref backend, bit for bit, before anything is timed.
//   matmul_bench --benchmark_filter='avx512/.*/M:1/'
//   matmul_bench --benchmark_filter='amx/threads:2/turbo[234]-g64/M:(1|4)/'
// "fast" figures are those of the fastest tenth of the calls: on a busy machine the mean says
// little. "of_one" is the time of a call beside that of one token, timed before in the same run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/test_matrix.h"
#include "base/threads.h"
#include "eval/bandwidth.h"
#include "peak_rate.h"

namespace tq {
namespace {

constexpr int64_t kCallBytes = int64_t{16} << 20;
constexpr int64_t kTotalBytes = 48 * kCallBytes;
constexpr int64_t kPrefillTokens = 256;
constexpr int64_t kCheckedRows = 48;

double Seconds(const std::chrono::steady_clock::time_point& begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double FastTenth(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 10];
}

// Bytes per second that `threads` threads read: of the fastest tenth of the passes, as of the
// calls.
double ReadBandwidth(int threads) {
  ThreadPool pool(threads);
  static BandwidthMeter meter = std::move(BandwidthMeter::Make(kTotalBytes, pool)).value();
  return meter.Rate(pool, 0.1, 0.1);
}

struct Kind {
  const char* name;
  int width;  // TurboQuant: entries of the codebook; affine: bits
  int group;
  CodecId codec;
};

constexpr Kind kKinds[] = {
    {"turbo2-g64", 4, 64, CodecId::kTurboQuant},
    {"turbo3-g64", 8, 64, CodecId::kTurboQuant},
    {"turbo4-g64", 16, 64, CodecId::kTurboQuant},
    {"bf16", 0, 1, CodecId::kBf16},
    {"q4_0", 0, 32, CodecId::kQ4_0},
    {"q8_0", 0, 32, CodecId::kQ8_0},
    {"q4_k", 0, 32, CodecId::kQ4K},
    {"q6_k", 0, 16, CodecId::kQ6K},
    {"affine4-g64", 4, 64, CodecId::kAffine},
    {"affine8-g64", 8, 64, CodecId::kAffine},
    {"mxfp4", 0, 32, CodecId::kMxfp4},
};

// One call: `count` matrices [rows, cols] over one input, as q, k, v or a token's experts.
struct ModelShape {
  const char* name;  // "": as many rows as make kCallBytes
  int64_t rows;
  int64_t cols;
  int count;
};

constexpr ModelShape kShapes[] = {
    {"", 0, 4096, 1},
    {"llama3-8b.gate_up", 14336, 4096, 2},
    {"llama3-8b.down", 4096, 14336, 1},
    {"llama3-8b.q", 4096, 4096, 1},
    {"llama3-8b.kv", 1024, 4096, 2},
    {"qwen3-4b.gate_up", 9728, 2560, 2},
    {"qwen3-4b.down", 2560, 9728, 1},
    {"qwen3-4b.q", 4096, 2560, 1},
    {"qwen3-4b.o", 2560, 4096, 1},
    {"qwen3-4b.kv", 1024, 2560, 2},
    {"qwen3.6-35b-a3b.experts.gate_up", 512, 2048, 16},
    {"qwen3.6-35b-a3b.experts.down", 2048, 512, 8},
};

TestMatrix MakeMatrix(const Kind& kind, int64_t rows, int64_t cols) {
  if (kind.codec == CodecId::kTurboQuant) {
    return TestMatrix::Turbo(kind.width, kind.group, Transform::kHadamard, rows, cols, 1);
  }
  if (kind.codec == CodecId::kAffine) {
    return TestMatrix::Groups({CodecId::kAffine, kind.width, kind.group}, DType::kBf16, true, 1,
                              rows, cols, 1);
  }
  return TestMatrix::Block(kind.codec, rows, cols, 1);
}

struct Case {
  Kind kind;
  ModelShape shape;
  BackendChoice choice;
  int threads;
  bool prefill;
  // Of everything but the number of tokens.
  std::string Key() const {
    return choice.isa + "/threads:" + std::to_string(threads) + "/" + kind.name + "/" + shape.name +
           (prefill ? "prefill" : "");
  }
};

// The matrices of one case are kept: neighbouring rows of the table share them.
struct Prepared {
  std::string key;
  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<Weight>> weights;
  std::unique_ptr<Backend> ref;
  std::unique_ptr<Weight> checked;  // the first kCheckedRows rows, by ref
  double one_token = 0;             // seconds of a call
};

Prepared& Prepare(const Case& c) {
  static Prepared prepared;
  if (prepared.key == c.Key()) return prepared;
  prepared = {};
  BackendOptions options;
  options.num_threads = c.threads;
  options.isa = c.choice.isa;
  prepared.backend = std::move(MakeBackend(c.choice.backend, options)).value();
  const ModelShape& shape = c.shape;
  const int64_t probe = MakeMatrix(c.kind, 16, shape.cols).stored().stored_bytes() / 16;
  const int64_t rows = shape.rows != 0 ? shape.rows : c.prefill ? 4096 : kCallBytes / probe;
  const TestMatrix matrix = MakeMatrix(c.kind, rows, shape.cols);
  const int64_t calls = c.prefill ? 1 : 1 + kTotalBytes / (shape.count * rows * probe);
  for (int64_t i = 0; i < calls * shape.count; ++i) {
    prepared.weights.push_back(std::move(prepared.backend->Prepare(matrix.stored())).value());
  }
  prepared.ref = std::move(MakeBackend("ref", {})).value();
  StoredMatrix first = matrix.stored();
  first.rows = std::min(rows, kCheckedRows);
  prepared.checked = std::move(prepared.ref->Prepare(first)).value();
  prepared.key = c.Key();
  return prepared;
}

// y of the first matrix has the bits that ref gives.
bool MatchesRef(const Prepared& prepared, const std::vector<float>& x, const float* y,
                int64_t num_tokens) {
  const int64_t rows = prepared.checked->rows();
  std::vector<float> expected(static_cast<size_t>(num_tokens * rows));
  const MatMulArgs args{prepared.checked.get(), x.data(), nullptr, expected.data(), num_tokens};
  Scratch scratch;
  prepared.ref->MatMul({&args, 1}, scratch);
  for (int64_t m = 0; m < num_tokens; ++m) {
    if (std::memcmp(y + m * prepared.weights[0]->rows(), expected.data() + m * rows,
                    static_cast<size_t>(rows) * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

// Speeds of the machine that the figures stand beside, measured once.
struct Machine {
  double read_bandwidth;  // GB/s
  double int8_rate;       // GMAC/s
  double f32_rate;
};

const Machine& MachineOf(const std::string& isa, int threads) {
  static std::map<std::pair<std::string, int>, Machine> known;
  const auto [at, is_new] = known.try_emplace({isa, threads});
  if (is_new) {
    ThreadPool pool(threads);
    const Isa which = IsaFromName(isa).value();
    at->second = {ReadBandwidth(threads) * 1e-9, PeakInt8(which, pool), PeakF32(which, pool)};
  }
  return at->second;
}

void MatMul(benchmark::State& state, const Case& c, int64_t num_tokens) {
  Prepared& prepared = Prepare(c);
  const int64_t rows = prepared.weights[0]->rows();
  const int64_t cols = c.shape.cols;
  const auto count = static_cast<size_t>(c.shape.count);
  const std::vector<float> x = RandomFloats(num_tokens * cols, 1);
  std::vector<std::vector<float>> y(count);
  for (auto& one : y) one.resize(static_cast<size_t>(num_tokens * rows));
  Scratch scratch;
  const auto call = [&](size_t i) {
    std::vector<MatMulArgs> args;
    for (size_t j = 0; j < count; ++j) {
      const Weight* weight = prepared.weights[(i * count + j) % prepared.weights.size()].get();
      args.push_back({weight, x.data(), nullptr, y[j].data(), num_tokens});
    }
    const auto begin = std::chrono::steady_clock::now();
    prepared.backend->MatMul(args, scratch);
    return Seconds(begin);
  };
  call(0);
  scratch.Reset();
  if (!MatchesRef(prepared, x, y[0].data(), num_tokens)) {
    state.SkipWithError("the result differs from ref");
    return;
  }
  const double before = c.prefill ? 0 : ReadBandwidth(c.threads);
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(call(seconds.size()));
    state.SetIterationTime(seconds.back());
  }
  const double fast = FastTenth(seconds);
  const double work = static_cast<double>(rows * cols * num_tokens) * static_cast<double>(count);
  state.counters["fast_GMAC/s"] = work / fast * 1e-9;
  const Machine& machine = MachineOf(c.choice.isa, c.threads);
  if (c.prefill) {
    const double peak = c.kind.codec == CodecId::kBf16 ? machine.f32_rate : machine.int8_rate;
    state.counters["peak_GMAC/s"] = peak;
    state.counters["share_%"] = work / fast * 1e-9 / peak * 100;
    return;
  }
  if (num_tokens == 1) prepared.one_token = fast;
  if (prepared.one_token > 0) state.counters["of_one"] = fast / prepared.one_token;
  const double bandwidth = std::max(before, ReadBandwidth(c.threads));
  const double rate =
      static_cast<double>(prepared.weights[0]->bytes()) * static_cast<double>(count) / fast;
  state.counters["fast_GB/s"] = rate * 1e-9;
  state.counters["read_GB/s"] = bandwidth * 1e-9;
  state.counters["share_%"] = rate / bandwidth * 100;
}

void Register(const Case& c, int64_t num_tokens) {
  constexpr int kDecodeCalls = 96;
  constexpr int kPrefillCalls = 20;
  const std::string shape = c.shape.name[0] == 0 ? "" : "/" + std::string(c.shape.name);
  const std::string name = c.choice.isa + "/threads:" + std::to_string(c.threads) + "/" +
                           c.kind.name + shape + (c.prefill ? "/prefill:" : "/M:") +
                           std::to_string(num_tokens);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { MatMul(state, c, num_tokens); })
      ->UseManualTime()
      ->Iterations(c.prefill ? kPrefillCalls : kDecodeCalls);
}

void RegisterAll() {
  for (const BackendChoice& choice : AvailableBackends()) {
    if (choice.backend == "ref") continue;
    for (const int threads : {1, 2}) {
      for (const Kind& kind : kKinds) {
        for (const ModelShape& shape : kShapes) {
          for (const int64_t num_tokens : {1, 2, 4, 8, 16}) {
            Register({kind, shape, choice, threads, /*prefill=*/false}, num_tokens);
          }
          Register({kind, shape, choice, threads, /*prefill=*/true}, kPrefillTokens);
        }
      }
    }
  }
}

// The head of every table. Two threads read hardly more than one ("slow") or twice as much.
void DescribeMachine() {
  const double one = ReadBandwidth(1) * 1e-9;
  const double two = ReadBandwidth(2) * 1e-9;
  std::fprintf(stderr, "read: 1 thread %.1f GB/s, 2 threads %.1f GB/s (%s regime)\n", one, two,
               two < 1.5 * one ? "slow" : "fast");
  for (const BackendChoice& choice : AvailableBackends()) {
    if (choice.backend == "ref") continue;
    for (const int threads : {1, 2}) {
      const Machine& machine = MachineOf(choice.isa, threads);
      std::fprintf(stderr, "%s, %d threads, from registers: int8 %.0f GMAC/s, f32 %.0f GMAC/s\n",
                   choice.isa.c_str(), threads, machine.int8_rate, machine.f32_rate);
    }
  }
}

}  // namespace
}  // namespace tq

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  tq::DescribeMachine();
  tq::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
