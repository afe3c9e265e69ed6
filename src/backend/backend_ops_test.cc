// The op matrix beside matmul: every backend and instruction set gives the bits of `ref`, for one
// and for several threads; attention is also held against f64 arithmetic.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/test_matrix.h"

namespace tq {
namespace {

using Op = std::function<std::vector<float>(Backend&)>;

// Runs `op` on every backend choice with 1 and 3 threads.
void ExpectSameBits(const std::string& what, const Op& op) {
  std::vector<BackendChoice> choices = AvailableBackends();
  std::reverse(choices.begin(), choices.end());  // ref first
  std::vector<float> expected;
  for (const BackendChoice& choice : choices) {
    for (const int threads : {1, 3}) {
      BackendOptions options;
      options.num_threads = threads;
      options.isa = choice.isa;
      Result<std::unique_ptr<Backend>> backend = MakeBackend(choice.backend, options);
      ASSERT_TRUE(backend.ok());
      const std::vector<float> found = op(**backend);
      if (expected.empty()) expected = found;
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(std::memcmp(&found[i], &expected[i], 4), 0)
            << what << " " << choice.backend << "/" << choice.isa << " threads " << threads
            << " element " << i << ": expected " << expected[i] << ", found " << found[i];
      }
    }
  }
}

TEST(OpsMatrix, RmsNorm) {
  for (const int64_t n : {1, 15, 128, 255, 256, 257, 2560}) {
    for (const bool plus_one : {false, true}) {
      for (const int64_t rows : {1, 9}) {
        const std::vector<float> x = RandomFloats(rows * n, 1);
        const std::vector<float> w = RandomFloats(n, 2);
        ExpectSameBits("rms norm n=" + std::to_string(n), [&](Backend& backend) {
          std::vector<float> out = x;  // in place
          backend.RmsNorm({out.data(), w.data(), plus_one, 1e-6f, out.data(), rows, n});
          return out;
        });
      }
    }
  }
}

TEST(OpsMatrix, Rope) {
  for (const int rotary_dim : {2, 10, 64, 96}) {
    constexpr int64_t kTokens = 5;
    constexpr int kHeads = 3;
    constexpr int kHeadDim = 96;
    const std::vector<float> x = RandomFloats(kTokens * kHeads * kHeadDim, 1);
    const std::vector<float> cosine = RandomFloats(kTokens * rotary_dim / 2, 2);
    const std::vector<float> sine = RandomFloats(kTokens * rotary_dim / 2, 3);
    ExpectSameBits("rope", [&](Backend& backend) {
      std::vector<float> out = x;
      backend.Rope({out.data(), kTokens, kHeads, kHeadDim, rotary_dim, cosine.data(), sine.data()});
      return out;
    });
  }
}

TEST(OpsMatrix, GluAddSoftcap) {
  for (const int64_t n : {1, 7, 16, 1000, 40000}) {
    std::vector<float> a = RandomFloats(n, 1);
    const std::vector<float> b = RandomFloats(n, 2);
    a[0] = -200.0f;
    if (n > 6) a[6] = 200.0f;
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      ExpectSameBits("glu", [&](Backend& backend) {
        std::vector<float> out = a;
        backend.Glu({activation, out.data(), b.data(), out.data(), n});
        return out;
      });
    }
    ExpectSameBits("add", [&](Backend& backend) {
      std::vector<float> out = a;
      backend.Add({b.data(), out.data(), n});
      return out;
    });
    ExpectSameBits("softcap", [&](Backend& backend) {
      std::vector<float> out = a;
      backend.Softcap({out.data(), 30.0f, n});
      return out;
    });
  }
}

// A cache of `context` tokens in shuffled pages, then queries for the last `num_tokens` of them.
struct AttentionCase {
  KvType type;
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int window;
  std::vector<int64_t> contexts;    // of each sequence, its new tokens included
  std::vector<int64_t> num_tokens;  // new tokens of each sequence
};

struct AttentionData {
  StepPlan fill;  // all positions
  StepPlan step;  // the new ones
  std::vector<float> k, v, q;
  int32_t num_pages = 0;
};

AttentionData MakeData(const AttentionCase& c) {
  AttentionData data;
  for (size_t s = 0; s < c.contexts.size(); ++s) {
    SequencePlan all;
    all.first_token = data.fill.num_tokens();
    all.num_tokens = c.contexts[s];
    SequencePlan fresh;
    fresh.first_token = data.step.num_tokens();
    fresh.num_tokens = c.num_tokens[s];
    fresh.start_position = c.contexts[s] - c.num_tokens[s];
    data.fill.ids.resize(data.fill.ids.size() + static_cast<size_t>(all.num_tokens));
    data.step.ids.resize(data.step.ids.size() + static_cast<size_t>(fresh.num_tokens));
    for (int64_t page = 0; page * kPageTokens < c.contexts[s]; ++page)
      all.pages.push_back(data.num_pages++);
    std::reverse(all.pages.begin(), all.pages.end());
    fresh.pages = all.pages;
    data.fill.sequences.push_back(all);
    data.step.sequences.push_back(fresh);
  }
  const int64_t kv_size = data.fill.num_tokens() * c.num_kv_heads * c.head_dim;
  data.k = RandomFloats(kv_size, 1);
  data.v = RandomFloats(kv_size, 2);
  data.q = RandomFloats(data.step.num_tokens() * c.num_heads * c.head_dim, 3);
  return data;
}

std::vector<float> Attend(Backend& backend, const AttentionCase& c, const AttentionData& data) {
  const KvLayout layout{c.type, c.num_kv_heads, c.head_dim};
  Buffer pages =
      std::move(Buffer::Allocate(static_cast<size_t>(data.num_pages * layout.page_bytes())))
          .value();
  backend.KvAppend({&data.fill, layout, pages.data(), data.k.data(), data.v.data()});
  std::vector<float> out(data.q.size());
  Scratch scratch;
  backend.Attention({&data.step, layout, pages.data(), data.q.data(), out.data(), c.num_heads,
                     1.0f / std::sqrt(static_cast<float>(c.head_dim)), c.window},
                    scratch);
  return out;
}

const std::vector<AttentionCase>& Cases() {
  static const std::vector<AttentionCase> cases = {
      {KvType::kF16, 4, 2, 64, 0, {1}, {1}},
      {KvType::kF16, 4, 1, 32, 0, {130}, {130}},
      {KvType::kF32, 3, 3, 80, 0, {70}, {17}},
      {KvType::kF16, 8, 2, 128, 0, {600, 3, 64}, {1, 3, 1}},
      {KvType::kF16, 2, 2, 256, 0, {90}, {2}},
      {KvType::kF16, 4, 2, 64, 100, {700}, {40}},
      {KvType::kF32, 2, 1, 64, 1, {66}, {66}},
      {KvType::kF16, 2, 1, 320, 512, {1100}, {1}},
  };
  return cases;
}

TEST(OpsMatrix, Attention) {
  for (const AttentionCase& c : Cases()) {
    const AttentionData data = MakeData(c);
    ExpectSameBits(
        "attention D=" + std::to_string(c.head_dim) + " window " + std::to_string(c.window),
        [&](Backend& backend) { return Attend(backend, c, data); });
  }
}

TEST(OpsMatrix, AttentionAgainstF64) {
  BackendOptions options;
  options.num_threads = 2;
  Result<std::unique_ptr<Backend>> ref = MakeBackend("ref", options);
  for (const AttentionCase& c : Cases()) {
    const AttentionData data = MakeData(c);
    const std::vector<float> out = Attend(**ref, c, data);
    const bool half = c.type == KvType::kF16;
    const auto stored = [half](float value) -> double {
      return half ? F16ToF32(F32ToF16(value)) : value;
    };
    for (size_t s = 0; s < c.contexts.size(); ++s) {
      for (int64_t t = 0; t < c.num_tokens[s]; ++t) {
        const int64_t position = c.contexts[s] - c.num_tokens[s] + t;
        const int64_t first = c.window > 0 ? std::max<int64_t>(0, position - c.window + 1) : 0;
        for (int head = 0; head < c.num_heads; ++head) {
          const int64_t row =
              ((data.step.sequences[s].first_token + t) * c.num_heads + head) * c.head_dim;
          const int64_t kv_head = head / (c.num_heads / c.num_kv_heads);
          std::vector<double> sum(static_cast<size_t>(c.head_dim));
          double total = 0;
          for (int64_t j = first; j <= position; ++j) {
            const int64_t kv =
                ((data.fill.sequences[s].first_token + j) * c.num_kv_heads + kv_head) * c.head_dim;
            double score = 0;
            for (int d = 0; d < c.head_dim; ++d) score += data.q[row + d] * stored(data.k[kv + d]);
            const double p = std::exp(score / std::sqrt(static_cast<double>(c.head_dim)));
            total += p;
            for (int d = 0; d < c.head_dim; ++d) sum[d] += p * stored(data.v[kv + d]);
          }
          for (int d = 0; d < c.head_dim; ++d) ASSERT_NEAR(out[row + d], sum[d] / total, 1e-5);
        }
      }
    }
  }
}

// A query alone gives what it gives among others.
TEST(OpsMatrix, AttentionCompanyDoesNotMatter) {
  const AttentionCase together{KvType::kF16, 4, 2, 64, 0, {200, 90}, {50, 1}};
  const AttentionData data = MakeData(together);
  for (const BackendChoice& choice : AvailableBackends()) {
    BackendOptions options;
    options.isa = choice.isa;
    Result<std::unique_ptr<Backend>> backend = MakeBackend(choice.backend, options);
    const std::vector<float> expected = Attend(**backend, together, data);
    constexpr int64_t kRow = 4 * 64;
    for (const int64_t token : {0, 13, 49}) {
      AttentionData alone = data;
      SequencePlan one = data.step.sequences[0];
      one.start_position += token;
      one.num_tokens = 1;
      one.first_token = 0;
      alone.step.sequences = {one};
      alone.q.assign(data.q.begin() + token * kRow, data.q.begin() + (token + 1) * kRow);
      const std::vector<float> found = Attend(**backend, together, alone);
      EXPECT_EQ(std::memcmp(found.data(), expected.data() + token * kRow, kRow * 4), 0)
          << choice.isa << " " << token;
    }
  }
}

}  // namespace
}  // namespace tq
