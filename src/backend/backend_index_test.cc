// Index selection: the same bits everywhere; the choice of double arithmetic where scores differ.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "backend/op_matrix.h"

namespace tq {
namespace {

struct IndexCase {
  KvFormat type;
  int num_heads;
  int head_dim;
  int64_t top_k;
  int block;
  bool weights;
  std::vector<int64_t> contexts;
  std::vector<int64_t> num_tokens;
};

struct IndexData : PagedPlans {
  std::vector<float> keys, q, w;
};

IndexData MakeData(const IndexCase& c) {
  IndexData data;
  static_cast<PagedPlans&>(data) = MakePagedPlans(c.contexts, c.num_tokens);
  data.keys = RandomFloats(data.fill.num_tokens() * c.head_dim, 1);
  data.q = RandomFloats(data.step.num_tokens() * c.num_heads * c.head_dim, 2);
  data.w = RandomFloats(data.step.num_tokens() * c.num_heads, 3);
  return data;
}

constexpr int64_t kStride = 40;  // words

// The bits, as floats of 16 each, so that the op matrix can compare them.
std::vector<float> Select(Backend& backend, const IndexCase& c, const IndexData& data) {
  const KvLayout layout{c.type, 1, c.head_dim, 0, KvValues::kNone};
  Buffer pages =
      std::move(Buffer::Allocate(static_cast<size_t>(data.num_pages * layout.page_bytes())))
          .value();
  backend.KvAppend({&data.fill, layout, pages.data(), data.keys.data(), nullptr});
  std::vector<uint64_t> selected(static_cast<size_t>(data.step.num_tokens() * kStride));
  Scratch scratch;
  backend.IndexSelect(
      {&data.step, layout, pages.data(), data.q.data(), c.weights ? data.w.data() : nullptr,
       c.num_heads, 0.125f, c.top_k, c.block, selected.data(), kStride},
      scratch);
  std::vector<float> out;
  for (const uint64_t word : selected) {
    for (int shift = 0; shift < 64; shift += 16) {
      out.push_back(static_cast<float>(word >> shift & 0xFFFF));
    }
  }
  return out;
}

bool Bit(const std::vector<float>& words, int64_t token, int64_t j) {
  const auto word = static_cast<uint32_t>(words[token * kStride * 4 + j / 16]);
  return (word >> (j % 16) & 1) != 0;
}

// What must hold for the query of `row` at `position`: `key(j)` scores.
void ExpectChoice(const IndexCase& c, const IndexData& data, int64_t first_key, int64_t row,
                  int64_t position, const std::vector<float>& words) {
  const int64_t candidates = (position + 1) / c.block;
  std::vector<double> scores;
  for (int64_t i = 0; i < candidates; ++i) {
    const int64_t key = (first_key + (i + 1) * c.block - 1) * c.head_dim;
    double sum = 0;
    for (int64_t a = row * c.num_heads; a < (row + 1) * c.num_heads; ++a) {
      double dot = 0;
      for (int d = 0; d < c.head_dim; ++d) {
        const float k = data.keys[key + d];
        dot += data.q[a * c.head_dim + d] *
               double{c.type == KvFormat::kF16 ? F16ToF32(F32ToF16(k)) : k};
      }
      sum += std::max(dot, 0.0) * (c.weights ? data.w[a] : 1.0f);
    }
    scores.push_back(sum * 0.125);
  }
  double worst_in = 1e30;
  double best_out = -1e30;
  int64_t chosen = 0;
  for (int64_t j = 0; j <= position; ++j) {
    const bool bit = Bit(words, row, j);
    if (j >= candidates * c.block) {
      ASSERT_TRUE(bit) << "the tail";
      continue;
    }
    ASSERT_EQ(bit, Bit(words, row, j / c.block * c.block)) << "a block is chosen whole";
    const double score = scores[j / c.block];
    (bit ? worst_in : best_out) = bit ? std::min(worst_in, score) : std::max(best_out, score);
    chosen += bit ? 1 : 0;
  }
  for (int64_t j = position + 1; j < kStride * 64; ++j) ASSERT_FALSE(Bit(words, row, j));
  ASSERT_EQ(chosen, std::min(candidates, c.top_k) * c.block);
  ASSERT_GE(worst_in, best_out - 1e-4);
}

TEST(IndexSelect, BitsAndValues) {
  const std::vector<IndexCase> cases = {
      {KvFormat::kF16, 4, 32, 20, 1, true, {300, 5, 66}, {40, 5, 1}},
      {KvFormat::kF32, 11, 24, 7, 1, false, {1500}, {2}},
      {KvFormat::kF16, 3, 64, 5, 4, true, {203, 64}, {70, 1}},
      {KvFormat::kF32, 2, 16, 3, 32, false, {700}, {3}},
      {KvFormat::kF16, 9, 32, 4, 64, true, {1000}, {5}},
      {KvFormat::kF16, 1, 320, 64, 16, true, {1300}, {3}},
  };
  for (const IndexCase& c : cases) {
    const IndexData data = MakeData(c);
    const std::vector<float> words =
        ExpectSameBits("index block " + std::to_string(c.block),
                       [&](Backend& backend) { return Select(backend, c, data); });
    for (size_t s = 0; s < c.contexts.size(); ++s) {
      const SequencePlan& sequence = data.step.sequences[s];
      for (int64_t i = 0; i < sequence.num_tokens; ++i) {
        ExpectChoice(c, data, data.fill.sequences[s].first_token, sequence.first_token + i,
                     sequence.start_position + i, words);
      }
    }
  }
}

TEST(IndexSelect, EqualScoresTakeTheLowerPosition) {
  IndexCase c{KvFormat::kF16, 2, 8, 10, 1, false, {200}, {1}};
  IndexData data = MakeData(c);
  std::fill(data.keys.begin(), data.keys.end(), 0.0f);
  for (int d = 0; d < 8; ++d) data.keys[150 * 8 + d] = data.q[d];  // the only score above 0
  const std::vector<float> words =
      ExpectSameBits("equal scores", [&](Backend& backend) { return Select(backend, c, data); });
  for (int64_t j = 0; j < 200; ++j) EXPECT_EQ(Bit(words, 0, j), j < 9 || j == 150) << j;
}

}  // namespace
}  // namespace tq
