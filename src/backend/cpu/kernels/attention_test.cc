#include <gtest/gtest.h>

#include "backend/cpu/kernels/float_reference.h"

namespace tq {
namespace {

using reference::FirstDifference;
using reference::Random;

// A cache of shuffled pages, filled by the kernels' own append; what lies beyond is NaN.
class Cache {
 public:
  Cache(Isa isa, bool f16, int num_heads, int num_kv_heads, int head_dim, int64_t length)
      : ops_(GetFloatOps(isa)),
        k_(Random(31, length * num_kv_heads * head_dim)),
        v_(Random(32, length * num_kv_heads * head_dim)) {
    const int64_t num_pages = (length + 63) / 64;
    for (int64_t i = 0; i < num_pages; ++i) {
      sequence_.pages.push_back(static_cast<int32_t>((i * 7 + 3) % num_pages));
    }
    if (num_pages % 7 == 0) {
      for (int64_t i = 0; i < num_pages; ++i)
        sequence_.pages[i] = static_cast<int32_t>(num_pages - 1 - i);
    }
    args_.layout = {f16 ? KvFormat::kF16 : KvFormat::kF32, num_kv_heads, head_dim, head_dim};
    args_.num_heads = num_heads;
    args_.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    const KvLayout& layout = args_.layout;
    const size_t bytes = static_cast<size_t>(num_pages * layout.page_bytes());
    pages_.lines.resize(bytes / 64);
    std::memset(pages_.data(), 0xFF, bytes);
    args_.pages = pages_.data();
    for (int64_t position = 0; position < length; ++position) {
      for (int g = 0; g < num_kv_heads; ++g) {
        std::byte* k_tile = pages_.data() + sequence_.pages[position / 64] * layout.page_bytes() +
                            g * layout.head_bytes();
        const int64_t row = (position * num_kv_heads + g) * head_dim;
        ops_.kv_append(f16, head_dim, head_dim, k_tile, k_tile + layout.k_tile_bytes(),
                       position % 64, k_.data() + row, v_.data() + row);
      }
    }
  }

  // The last `num_tokens` positions as queries, in calls of `per_call` tokens.
  std::vector<float> Run(int64_t length, int64_t num_tokens, int window, int64_t per_call) {
    Prepare(length, num_tokens, window);
    const int64_t heads = args_.num_heads / args_.layout.num_kv_heads;
    std::vector<reference::Line> work(
        static_cast<size_t>(ops_.attention_work(args_, per_call * heads) * 4 + 63) / 64);
    for (int g = 0; g < args_.layout.num_kv_heads; ++g) {
      for (int64_t t = 0; t < num_tokens; t += per_call) {
        ops_.attention(args_, sequence_, t * heads, std::min(num_tokens, t + per_call) * heads, g,
                       reinterpret_cast<float*>(work.data()));
      }
    }
    return out_;
  }

  std::vector<float> Expected(int64_t length, int64_t num_tokens, int window) {
    Prepare(length, num_tokens, window);
    std::vector<float> expected;
    for (int64_t t = 0; t < num_tokens; ++t) {
      for (int h = 0; h < args_.num_heads; ++h) {
        const std::vector<float> head = reference::Attend(args_, sequence_, t, h);
        expected.insert(expected.end(), head.begin(), head.end());
      }
    }
    return expected;
  }

  const AttentionArgs& args() const { return args_; }
  const std::vector<float>& k() const { return k_; }
  const std::vector<float>& v() const { return v_; }

 private:
  void Prepare(int64_t length, int64_t num_tokens, int window) {
    q_ = Random(33, num_tokens * args_.num_heads * args_.layout.head_dim);
    out_.assign(q_.size(), -1.0f);
    sequence_.num_tokens = num_tokens;
    sequence_.start_position = length - num_tokens;
    args_.window = window;
    args_.q = q_.data();
    args_.out = out_.data();
  }

  const FloatOps& ops_;
  std::vector<float> k_, v_, q_, out_;
  reference::Tiles pages_;
  SequencePlan sequence_;
  AttentionArgs args_{};
};

TEST(Attention, EveryIsaGivesTheBitsOfTheRule) {
  for (const Isa isa : DetectIsas()) {
    for (const bool f16 : {true, false}) {
      for (const int head_dim : {2, 24, 40, 64, 80, 128}) {
        for (const int64_t length : {1, 65, 600}) {
          Cache cache(isa, f16, 6, 2, head_dim, length);
          const int64_t tokens = std::min<int64_t>(length, 3);
          for (const int window : {0, 1, 70}) {
            const std::vector<float> y = cache.Run(length, tokens, window, tokens);
            EXPECT_EQ(FirstDifference(y, cache.Expected(length, tokens, window)), -1)
                << IsaName(isa) << (f16 ? " f16" : " f32") << " head_dim " << head_dim << " length "
                << length << " window " << window;
          }
        }
      }
    }
  }
}

TEST(Attention, HeadsWiderThanABlockOfColumns) {
  for (const Isa isa : DetectIsas()) {
    Cache cache(isa, true, 1, 1, 320, 70);
    EXPECT_EQ(FirstDifference(cache.Run(70, 2, 0, 2), cache.Expected(70, 2, 0)), -1)
        << IsaName(isa);
  }
}

// Prefill equals decode: a query's bits do not depend on which others share its pass.
TEST(Attention, AloneAsInABatch) {
  for (const Isa isa : DetectIsas()) {
    for (const int num_heads : {1, 3, 8}) {
      Cache cache(isa, true, num_heads, 1, 40, 530);
      for (const int window : {0, 5, 64, 100}) {
        const std::vector<float> batch = cache.Run(530, 150, window, 150);
        EXPECT_EQ(FirstDifference(batch, cache.Run(530, 150, window, 1)), -1) << IsaName(isa);
        EXPECT_EQ(FirstDifference(batch, cache.Run(530, 150, window, 7)), -1) << IsaName(isa);
      }
    }
  }
}

TEST(Attention, CloseToDoublePrecision) {
  const int64_t length = 1100;
  const int dims = 64;
  for (const Isa isa : DetectIsas()) {
    Cache cache(isa, false, 1, 1, dims, length);
    const std::vector<float> y = cache.Run(length, 1, 0, 1);
    std::vector<double> out(dims, 0.0);
    double sum = 0.0;
    for (int64_t j = 0; j < length; ++j) {
      double score = 0.0;
      for (int d = 0; d < dims; ++d) score += double{cache.args().q[d]} * cache.k()[j * dims + d];
      const double p = std::exp(score * cache.args().scale);
      sum += p;
      for (int d = 0; d < dims; ++d) out[d] += p * cache.v()[j * dims + d];
    }
    for (int d = 0; d < dims; ++d) EXPECT_NEAR(y[d], out[d] / sum, 1e-6);
  }
}

TEST(KvAppend, WritesOnlyItsSlot) {
  for (const Isa isa : DetectIsas()) {
    for (const bool f16 : {true, false}) {
      const int dims = 22;
      const size_t tile_bytes = static_cast<size_t>(64 * dims * (f16 ? 2 : 4));
      std::vector<float> k = Random(34, dims), v = Random(35, dims);
      k[1] = 1e6f;                   // infinity in f16
      k[2] = -3e-6f;                 // subnormal in f16
      v[3] = 1.0f + 1.0f / 2048.0f;  // a tie
      std::vector<std::byte> k_tile(tile_bytes), v_tile(tile_bytes);
      GetFloatOps(isa).kv_append(f16, dims, dims, k_tile.data(), v_tile.data(), 63, k.data(),
                                 v.data());
      const FloatType type = f16 ? FloatType::kF16 : FloatType::kF32;
      for (int64_t slot = 0; slot < 64; ++slot) {
        for (int64_t d = 0; d < dims; ++d) {
          const bool mine = slot == 63;
          ASSERT_EQ(reference::LoadElement(f16, k_tile.data(), reference::KeyIndex(slot, d)),
                    mine ? reference::Stored(type, k[d]) : 0.0f);
          ASSERT_EQ(reference::LoadElement(f16, v_tile.data(), slot * dims + d),
                    mine ? reference::Stored(type, v[d]) : 0.0f);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tq
