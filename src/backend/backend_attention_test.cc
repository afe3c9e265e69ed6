// The op matrix of attention: the same bits everywhere, the values of double arithmetic, and the
// same bits alone as in company.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/op_matrix.h"

namespace tq {
namespace {

constexpr int kPrefix = -1;  // v_dim: values are the first half of the keys

// A cache of `context` tokens in shuffled pages, then queries for the last `num_tokens` of them.
struct AttentionCase {
  KvFormat type;
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int v_dim;  // or kPrefix
  int window;
  std::vector<int64_t> contexts;    // of each sequence, its new tokens included
  std::vector<int64_t> num_tokens;  // new tokens of each sequence
  bool causal = true;
  bool sinks = false;
  int keep = 0;  // > 0: of every `keep` positions about one is selected

  KvLayout layout() const {
    if (v_dim == kPrefix) {
      return {type, num_kv_heads, head_dim, head_dim / 4 * 2, KvValues::kKeyPrefix};
    }
    return {type, num_kv_heads, head_dim, v_dim};
  }
};

struct AttentionData : PagedPlans {
  std::vector<float> k, v, q, sinks;
  std::vector<uint64_t> selected;
  int64_t stride = 0;
};

AttentionData MakeData(const AttentionCase& c) {
  AttentionData data;
  static_cast<PagedPlans&>(data) = MakePagedPlans(c.contexts, c.num_tokens);
  const KvLayout layout = c.layout();
  const int64_t rows = data.fill.num_tokens() * c.num_kv_heads;
  data.k = RandomFloats(rows * c.head_dim, 1);
  data.v = RandomFloats(rows * layout.v_head_dim, 2);
  data.q = RandomFloats(data.step.num_tokens() * c.num_heads * c.head_dim, 3);
  if (c.sinks) data.sinks = RandomFloats(c.num_heads, 4);
  if (c.keep == 0) return data;
  data.stride = *std::max_element(c.contexts.begin(), c.contexts.end()) / 64 + 2;
  std::mt19937 random(5);
  data.selected.resize(static_cast<size_t>(data.step.num_tokens() * data.stride));
  for (const SequencePlan& sequence : data.step.sequences) {
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      uint64_t* bits = data.selected.data() + (sequence.first_token + i) * data.stride;
      const int64_t position = sequence.start_position + i;
      for (int64_t j = 0; j <= position + 40; ++j) {  // also beyond what is visible
        if (random() % static_cast<uint32_t>(c.keep) == 0 || j == position) {
          bits[j / 64] |= uint64_t{1} << (j % 64);
        }
      }
    }
  }
  return data;
}

std::vector<float> Attend(Backend& backend, const AttentionCase& c, const AttentionData& data) {
  const KvLayout layout = c.layout();
  Buffer pages =
      std::move(Buffer::Allocate(static_cast<size_t>(data.num_pages * layout.page_bytes())))
          .value();
  // What no token fills must not be read.
  std::memset(pages.data(), 0xFF, pages.size());
  const bool own = layout.values == KvValues::kOwn;
  backend.KvAppend(
      {&data.fill, layout, pages.data(), data.k.data(), own ? data.v.data() : nullptr});
  std::vector<float> out(
      static_cast<size_t>(data.step.num_tokens() * c.num_heads * layout.v_head_dim), -1.0f);
  Scratch scratch;
  backend.Attention({&data.step, layout, pages.data(), data.q.data(), out.data(), c.num_heads,
                     1.0f / std::sqrt(static_cast<float>(c.head_dim)), c.window, c.causal,
                     c.sinks ? data.sinks.data() : nullptr,
                     c.keep > 0 ? data.selected.data() : nullptr, data.stride},
                    scratch);
  return out;
}

const std::vector<AttentionCase>& Cases() {
  static const std::vector<AttentionCase> cases = {
      {KvFormat::kF16, 4, 2, 64, 64, 0, {1}, {1}},
      {KvFormat::kF16, 4, 1, 32, 32, 0, {130}, {130}},
      {KvFormat::kF32, 3, 3, 80, 80, 0, {70}, {17}},
      {KvFormat::kF16, 8, 2, 128, 128, 0, {600, 3, 64}, {1, 3, 1}},
      {KvFormat::kF16, 2, 2, 256, 256, 0, {90}, {2}},
      {KvFormat::kF16, 4, 2, 64, 64, 100, {700}, {40}},
      {KvFormat::kF32, 2, 1, 64, 64, 1, {66}, {66}},
      {KvFormat::kF16, 2, 1, 320, 320, 512, {1100}, {1}},
      // values of another size
      {KvFormat::kF16, 4, 2, 96, 40, 0, {600, 9}, {20, 9}},
      {KvFormat::kF32, 4, 4, 32, 96, 0, {80}, {5}},
      {KvFormat::kF16, 2, 1, 512, 512, 0, {70}, {3}},
      // sinks
      {KvFormat::kF16, 8, 2, 64, 64, 0, {600, 3}, {2, 3}, true, true},
      {KvFormat::kF32, 4, 2, 64, 64, 30, {100}, {50}, true, true},
      // not causal
      {KvFormat::kF16, 4, 2, 64, 64, 0, {150, 20}, {40, 20}, false},
      {KvFormat::kF16, 4, 2, 32, 32, 70, {700}, {10}, false, true},
      // keys that hold the values
      {KvFormat::kF16, 16, 1, 96, kPrefix, 0, {600, 70, 1}, {3, 1, 1}},
      {KvFormat::kF32, 20, 1, 72, kPrefix, 0, {1100}, {2}},
      {KvFormat::kF16, 6, 2, 36, kPrefix, 50, {130}, {90}},
      {KvFormat::kF16, 128, 1, 64, kPrefix, 0, {80}, {20}},
      // selected positions
      {KvFormat::kF16, 4, 2, 64, 64, 0, {700, 66}, {20, 1}, true, false, 3},
      {KvFormat::kF32, 4, 1, 40, 24, 90, {300}, {30}, true, true, 2},
      {KvFormat::kF16, 16, 1, 64, kPrefix, 0, {1500}, {5}, true, false, 200},
      {KvFormat::kF16, 4, 2, 64, 64, 0, {700}, {20}, false, false, 100},
  };
  return cases;
}

std::string Name(const AttentionCase& c) {
  return "attention D=" + std::to_string(c.head_dim) + " Dv=" + std::to_string(c.v_dim) +
         " H=" + std::to_string(c.num_heads) + " window " + std::to_string(c.window) + " keep " +
         std::to_string(c.keep);
}

TEST(Attention, SameBits) {
  for (const AttentionCase& c : Cases()) {
    const AttentionData data = MakeData(c);
    ExpectSameBits(Name(c), [&](Backend& backend) { return Attend(backend, c, data); });
  }
}

bool Visible(const AttentionCase& c, const AttentionData& data, const SequencePlan& sequence,
             int64_t t, int64_t j) {
  const int64_t position = sequence.start_position + t;
  const int64_t last = c.causal ? position : sequence.start_position + sequence.num_tokens - 1;
  const int64_t newest = c.causal ? position : sequence.start_position;
  if (j > last || (c.window > 0 && newest - j >= c.window)) return false;
  if (c.keep == 0) return true;
  const uint64_t* bits = data.selected.data() + (sequence.first_token + t) * data.stride;
  return (bits[j / 64] >> (j % 64) & 1) != 0;
}

// One head of one token.
void ExpectHead(const AttentionCase& c, const AttentionData& data, size_t s, int64_t t, int head,
                const float* out) {
  const KvLayout layout = c.layout();
  const auto stored = [&](float value) -> double {
    return c.type == KvFormat::kF16 ? F16ToF32(F32ToF16(value)) : value;
  };
  const SequencePlan& sequence = data.step.sequences[s];
  const float* q = data.q.data() + ((sequence.first_token + t) * c.num_heads + head) * c.head_dim;
  std::vector<double> sum(static_cast<size_t>(layout.v_head_dim));
  double total = c.sinks ? std::exp(data.sinks[head]) : 0;
  for (int64_t j = 0; j < c.contexts[s]; ++j) {
    if (!Visible(c, data, sequence, t, j)) continue;
    const int64_t row = (data.fill.sequences[s].first_token + j) * c.num_kv_heads +
                        head / (c.num_heads / c.num_kv_heads);
    const float* k = data.k.data() + row * c.head_dim;
    const float* v = layout.values == KvValues::kOwn ? data.v.data() + row * layout.v_head_dim : k;
    double score = 0;
    for (int d = 0; d < c.head_dim; ++d) score += q[d] * stored(k[d]);
    const double p = std::exp(score / std::sqrt(static_cast<double>(c.head_dim)));
    total += p;
    for (int d = 0; d < layout.v_head_dim; ++d) sum[d] += p * stored(v[d]);
  }
  for (int d = 0; d < layout.v_head_dim; ++d) ASSERT_NEAR(out[d], sum[d] / total, 1e-5);
}

TEST(Attention, AgainstF64) {
  const std::unique_ptr<Backend> ref = MakeRef();
  for (const AttentionCase& c : Cases()) {
    const AttentionData data = MakeData(c);
    const std::vector<float> out = Attend(*ref, c, data);
    const int64_t width = int64_t{c.num_heads} * c.layout().v_head_dim;
    for (size_t s = 0; s < c.contexts.size(); ++s) {
      for (int64_t t = 0; t < c.num_tokens[s]; ++t) {
        for (int head = 0; head < c.num_heads; ++head) {
          const int64_t token = data.step.sequences[s].first_token + t;
          ExpectHead(c, data, s, t, head,
                     out.data() + token * width + head * c.layout().v_head_dim);
          if (HasFatalFailure()) FAIL() << Name(c) << " token " << t;
        }
      }
    }
  }
}

// A query alone gives what it gives among others.
TEST(Attention, CompanyDoesNotMatter) {
  for (const int v_dim : {64, kPrefix}) {
    for (const int keep : {0, 10}) {
      const AttentionCase together{KvFormat::kF16, 4,       2,    64,   v_dim, 0,
                                   {200, 90},      {50, 1}, true, true, keep};
      const AttentionData data = MakeData(together);
      const int64_t row = int64_t{4} * together.layout().v_head_dim;
      for (const BackendChoice& choice : AvailableBackends()) {
        const std::unique_ptr<Backend> backend = MakeTestBackend(choice.backend, choice.isa, 2);
        const std::vector<float> expected = Attend(*backend, together, data);
        for (const int64_t token : {0, 13, 49}) {
          AttentionData alone = data;
          SequencePlan one = data.step.sequences[0];
          one.start_position += token;
          one.num_tokens = 1;
          one.first_token = 0;
          alone.step.sequences = {one};
          alone.step.ids.resize(1);
          alone.q.assign(data.q.begin() + token * 4 * 64, data.q.begin() + (token + 1) * 4 * 64);
          alone.selected.erase(
              alone.selected.begin(),
              alone.selected.begin() + static_cast<std::ptrdiff_t>(token * data.stride));
          const std::vector<float> found = Attend(*backend, together, alone);
          EXPECT_EQ(std::memcmp(found.data(), expected.data() + token * row,
                                static_cast<size_t>(row) * 4),
                    0)
              << choice.isa << " " << token;
        }
      }
    }
  }
}

// Scores that are all -inf give 0, over one tile and over segments.
TEST(Attention, OnlyInfiniteScores) {
  for (const int64_t context : {10, 1200}) {
    AttentionCase c{KvFormat::kF32, 2, 1, 8, 8, 0, {context}, {1}};
    AttentionData data = MakeData(c);
    std::fill(data.k.begin(), data.k.end(), -std::numeric_limits<float>::max());
    std::fill(data.q.begin(), data.q.end(), 10.0f);
    for (const float value :
         ExpectSameBits("-inf", [&](Backend& backend) { return Attend(backend, c, data); })) {
      EXPECT_EQ(value, 0.0f);
    }
    std::fill(data.k.end() - 8, data.k.end(), 0.0f);  // one finite score: its value alone
    const std::vector<float> out =
        ExpectSameBits("one finite", [&](Backend& backend) { return Attend(backend, c, data); });
    for (int d = 0; d < 8; ++d) EXPECT_EQ(out[d], data.v[data.v.size() - 8 + d]);
  }
}

}  // namespace
}  // namespace tq
