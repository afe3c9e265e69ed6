// Attention over a KV cache of 16K tokens in several formats: time per KV head on one thread, bytes
// read per second, and how much faster than f16. Formats take turns, so that a machine that slows
// down slows them all. Usage: kv_bench [avx512|avx2|neon].
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/float_ops.h"
#include "backend/cpu/kernels/int_matmul.h"
#include "backend/kv_rows.h"

namespace tq {
namespace {

constexpr int kHeadDim = 128;
constexpr int kNumKvHeads = 8;
constexpr int64_t kDepth = 16384;
constexpr int kRounds = 15;

class Subject {
 public:
  Subject(const KvSettings& kv, const FloatOps& floats, const IntOps& ints)
      : floats_(floats), layout_{kv, kNumKvHeads, kHeadDim, kHeadDim, KvValues::kOwn} {
    kernels_ = {&floats, &ints, true, &rotations_.OfKeys(layout_), &rotations_.OfValues(layout_)};
    const int64_t num_pages = kDepth / kPageTokens;
    pages_ =
        std::move(Buffer::Allocate(static_cast<size_t>(num_pages * layout_.page_bytes()))).value();
    sequence_.pages.resize(static_cast<size_t>(num_pages));
    std::iota(sequence_.pages.begin(), sequence_.pages.end(), 0);
    Fill();
  }

  // Seconds of all KV heads for the last `tokens` tokens.
  double Run(int heads_per_kv, int64_t tokens) {
    const int num_heads = heads_per_kv * kNumKvHeads;
    std::vector<float> q(static_cast<size_t>(tokens * num_heads * kHeadDim));
    std::vector<float> out(q.size());
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (float& x : q) x = normal(random);
    sequence_.num_tokens = tokens;
    sequence_.start_position = kDepth - tokens;
    AttentionArgs args{};
    args.layout = layout_;
    args.pages = pages_.data();
    args.q = q.data();
    args.out = out.data();
    args.num_heads = num_heads;
    args.scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim));
    const int64_t items = tokens * heads_per_kv;
    const bool plain = layout_.k_format() == KvFormat::kF16 && !layout_.packed();
    const int64_t floats = plain ? floats_.attention_work(args, items)
                                 : floats_.packed_attention_work(args, true, items);
    Buffer work = std::move(Buffer::Allocate(static_cast<size_t>(floats) * 4)).value();
    auto* memory = reinterpret_cast<float*>(work.data());
    const auto begin = std::chrono::steady_clock::now();
    for (int g = 0; g < kNumKvHeads; ++g) {
      if (plain) {
        floats_.attention(args, sequence_, 0, items, g, memory);
      } else {
        floats_.packed_attention(args, kernels_, sequence_, 0, items, g, memory);
      }
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const KvLayout& layout() const { return layout_; }

 private:
  void Fill() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> row(kHeadDim);
    KvRowWork work;
    for (int64_t position = 0; position < kDepth; ++position) {
      std::byte* page = pages_.data() + position / kPageTokens * layout_.page_bytes();
      for (int g = 0; g < kNumKvHeads; ++g) {
        for (float& x : row) x = normal(random);
        std::byte* k = page + g * layout_.head_bytes();
        StoreKvRow(layout_.k_tile(), k, position % kPageTokens, row.data(), work);
        StoreKvRow(layout_.v_tile(), k + layout_.k_tile_bytes(), position % kPageTokens, row.data(),
                   work);
      }
    }
  }

  const FloatOps& floats_;
  KvLayout layout_;
  KvRotations rotations_;
  PackedKernels kernels_{};
  Buffer pages_;
  SequencePlan sequence_;
};

int Main(int argc, char** argv) {
  const std::vector<Isa> isas = DetectIsas();
  std::optional<Isa> isa = isas.empty() ? std::nullopt : std::optional<Isa>(isas.front());
  if (argc > 1) isa = IsaFromName(argv[1]);
  if (!isa.has_value() || std::find(isas.begin(), isas.end(), *isa) == isas.end()) {
    std::fprintf(stderr, "usage: kv_bench [avx512|avx2|neon], one that this machine has\n");
    return 2;
  }
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const char* name :
       {"16/16", "8/8", "8/4", "8/3", "4/4", "4/3", "3/3", "2/2", "bf16/bf16", "5/5"}) {
    const Result<KvSettings> kv = ParseKvSettings(name, {});
    subjects.push_back(std::make_unique<Subject>(kv.value(), GetFloatOps(*isa), GetIntOps(*isa)));
  }
  std::printf("isa %s, one thread, head dim %d, %d KV heads, depth %lld\n", IsaName(*isa), kHeadDim,
              kNumKvHeads, static_cast<long long>(kDepth));
  struct Shape {
    int heads_per_kv;
    int64_t tokens;
    int rounds;
  };
  for (const Shape& shape : {Shape{1, 1, kRounds}, Shape{4, 1, kRounds}, Shape{4, 16, 3}}) {
    std::vector<double> best(subjects.size(), 1e9);
    for (int round = 0; round < shape.rounds; ++round) {
      for (size_t i = 0; i < subjects.size(); ++i) {
        best[i] = std::min(best[i], subjects[i]->Run(shape.heads_per_kv, shape.tokens));
      }
    }
    std::printf("%d queries of %lld tokens per KV head\n", shape.heads_per_kv,
                static_cast<long long>(shape.tokens));
    for (size_t i = 0; i < subjects.size(); ++i) {
      const KvLayout& layout = subjects[i]->layout();
      const auto bytes = static_cast<double>(layout.page_bytes() * (kDepth / kPageTokens));
      std::printf("  %-8s %5.0f bytes/token/head  %8.1f us/head  %5.1f GB/s  %.2f x f16\n",
                  KvSettingsText(layout.settings).c_str(),
                  static_cast<double>(layout.head_bytes()) / kPageTokens,
                  best[i] * 1e6 / kNumKvHeads, bytes / best[i] * 1e-9, best[0] / best[i]);
    }
  }
  return 0;
}

}  // namespace
}  // namespace tq

int main(int argc, char** argv) { return tq::Main(argc, argv); }
