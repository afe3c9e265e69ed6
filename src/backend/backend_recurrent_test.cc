// The ops with a state: the same bits everywhere, however a sequence is cut into steps, and the
// values of double arithmetic.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/op_matrix.h"

namespace tq {
namespace {

// Sequences that are fed to an op over several steps. `run` gets a step's plan, the index of its
// first token among all tokens of the sequences in that step, and appends to the outputs.
struct Feed {
  std::vector<int64_t> lengths;
  // Runs step after step: in each, sequence s gets up to `cut` tokens (all of them: cut 0).
  template <typename Run>
  void InSteps(int64_t cut, const Run& run) const {
    std::vector<int64_t> done(lengths.size());
    while (true) {
      std::vector<int64_t> counts;
      for (size_t s = 0; s < lengths.size(); ++s) {
        const int64_t left = lengths[s] - done[s];
        counts.push_back(cut == 0 ? left : std::min(cut, left));
      }
      StepPlan plan = MakePlan(counts, done);
      std::erase_if(plan.sequences, [](const SequencePlan& q) { return q.num_tokens == 0; });
      if (plan.sequences.empty()) return;
      run(plan);
      for (size_t s = 0; s < lengths.size(); ++s) done[s] += counts[s];
    }
  }
  int64_t Total() const {
    int64_t total = 0;
    for (const int64_t length : lengths) total += length;
    return total;
  }
  // The row of a sequence's token among the rows of all sequences. The slot names the sequence.
  int64_t Row(const SequencePlan& sequence, int64_t i) const {
    const size_t s = lengths.size() - 1 - static_cast<size_t>(sequence.state_slot);
    int64_t row = sequence.start_position + i;
    for (size_t before = 0; before < s; ++before) row += lengths[before];
    return row;
  }
  // all[Row(token)] -> step[token], or back.
  std::vector<float> Gather(const StepPlan& plan, const std::vector<float>& all,
                            int64_t width) const {
    std::vector<float> step(static_cast<size_t>(plan.num_tokens() * width));
    for (const SequencePlan& q : plan.sequences) {
      for (int64_t i = 0; i < q.num_tokens; ++i) {
        std::copy_n(all.begin() + Row(q, i) * width, width,
                    step.begin() + (q.first_token + i) * width);
      }
    }
    return step;
  }
  void Scatter(const StepPlan& plan, const std::vector<float>& step, int64_t width,
               std::vector<float>& all) const {
    for (const SequencePlan& q : plan.sequences) {
      for (int64_t i = 0; i < q.num_tokens; ++i) {
        std::copy_n(step.begin() + (q.first_token + i) * width, width,
                    all.begin() + Row(q, i) * width);
      }
    }
  }
};

// A slot holds whatever an older sequence left.
std::vector<float> OldState(size_t n) {
  return std::vector<float>(n, std::numeric_limits<float>::quiet_NaN());
}

// Runs `op(backend, cut)` with several cuts: all must give the same bits everywhere.
std::vector<float> ExpectCutsAlike(const std::string& what,
                                   const std::function<std::vector<float>(Backend&, int64_t)>& op) {
  std::vector<float> first;
  for (const int64_t cut : {0, 1, 3, 20}) {
    const std::string name = what + " cut " + std::to_string(cut);
    const std::vector<float> found =
        ExpectSameBits(name, [&](Backend& backend) { return op(backend, cut); });
    if (first.empty()) first = found;
    EXPECT_EQ(FirstDifferentBits(first, found), -1) << name;
  }
  return first;
}

struct ConvCase {
  int64_t channels;
  int kernel;
  int dilation;
  bool silu;
  bool bias;
};

TEST(CausalConv, BitsAndValues) {
  const Feed feed{{37, 1, 5}};
  for (const ConvCase& c : {ConvCase{130, 4, 1, true, false}, ConvCase{7, 3, 2, false, true},
                            ConvCase{64, 1, 1, true, true}, ConvCase{300, 2, 5, true, true}}) {
    const int64_t history = int64_t{c.kernel - 1} * c.dilation;
    const int64_t stride = c.channels + 3;
    const std::vector<float> x = RandomFloats(feed.Total() * stride, 1);
    const std::vector<float> w = RandomFloats(c.kernel * c.channels, 2);
    const std::vector<float> bias = RandomFloats(c.channels, 3);
    const int64_t state_stride = history * c.channels + 11;
    const std::vector<float> y = ExpectCutsAlike("conv", [&](Backend& backend, int64_t cut) {
      std::vector<float> all(static_cast<size_t>(feed.Total() * c.channels));
      std::vector<float> state = OldState(static_cast<size_t>(3 * state_stride));
      feed.InSteps(cut, [&](const StepPlan& plan) {
        const std::vector<float> in = feed.Gather(plan, x, stride);
        std::vector<float> out(static_cast<size_t>(plan.num_tokens() * c.channels));
        backend.CausalConv({&plan,
                            in.data(),
                            stride,
                            w.data(),
                            c.bias ? bias.data() : nullptr,
                            c.silu,
                            out.data(),
                            c.channels,
                            c.kernel,
                            c.dilation,
                            {state.data(), state_stride}});
        feed.Scatter(plan, out, c.channels, all);
      });
      for (int64_t s = 0; s < 3; ++s) {  // the state in front of the gap
        all.insert(all.end(), state.begin() + s * state_stride,
                   state.begin() + s * state_stride + history * c.channels);
      }
      return all;
    });
    int64_t row = 0;
    for (const int64_t length : feed.lengths) {
      for (int64_t t = 0; t < length; ++t, ++row) {
        for (int64_t channel = 0; channel < c.channels; ++channel) {
          double sum = c.bias ? bias[channel] : 0;
          for (int64_t s = 0; s < c.kernel; ++s) {
            const int64_t back = (c.kernel - 1 - s) * c.dilation;
            if (back > t) continue;
            sum += double{w[s * c.channels + channel]} * x[(row - back) * stride + channel];
          }
          if (c.silu) sum = sum / (1 + std::exp(-sum));
          ASSERT_NEAR(y[row * c.channels + channel], sum, 1e-5);
        }
      }
    }
  }
}

struct DeltaCase {
  int k_heads;
  int v_heads;
  int k_dim;
  int v_dim;
  bool per_key;
};

struct DeltaData {
  std::vector<float> q, k, v, log_decay, beta;
};

DeltaData MakeDelta(const DeltaCase& c, int64_t tokens) {
  DeltaData data;
  const auto unit = [&](uint32_t seed) {
    std::vector<float> x = RandomFloats(tokens * c.k_heads * c.k_dim, seed);
    for (int64_t row = 0; row < tokens * c.k_heads; ++row) {
      double sum = 0;
      for (int i = 0; i < c.k_dim; ++i) sum += double{x[row * c.k_dim + i]} * x[row * c.k_dim + i];
      for (int i = 0; i < c.k_dim; ++i) x[row * c.k_dim + i] /= static_cast<float>(std::sqrt(sum));
    }
    return x;
  };
  data.q = unit(1);
  data.k = unit(2);
  data.v = RandomFloats(tokens * c.v_heads * c.v_dim, 3);
  data.log_decay = RandomFloats(tokens * c.v_heads * (c.per_key ? c.k_dim : 1), 4);
  for (float& value : data.log_decay) value = -0.3f * std::fabs(value);
  data.beta = RandomFloats(tokens * c.v_heads, 5);
  for (float& value : data.beta) value = 1.0f / (1.0f + std::exp(-value));
  return data;
}

// All outputs, then the states of all slots.
std::vector<double> DeltaInDouble(const DeltaCase& c, const DeltaData& data, const Feed& feed) {
  std::vector<double> out(static_cast<size_t>(feed.Total() * c.v_heads * c.v_dim));
  int64_t first = 0;
  for (const int64_t length : feed.lengths) {
    for (int head = 0; head < c.v_heads; ++head) {
      const int k_head = head / (c.v_heads / c.k_heads);
      std::vector<double> s(static_cast<size_t>(c.k_dim * c.v_dim));
      for (int64_t t = first; t < first + length; ++t) {
        const int64_t row = t * c.v_heads + head;
        const float* q = data.q.data() + (t * c.k_heads + k_head) * c.k_dim;
        const float* k = data.k.data() + (t * c.k_heads + k_head) * c.k_dim;
        for (int v = 0; v < c.v_dim; ++v) {
          double r = 0;
          for (int i = 0; i < c.k_dim; ++i) {
            s[i * c.v_dim + v] *= std::exp(data.log_decay[c.per_key ? row * c.k_dim + i : row]);
            r += s[i * c.v_dim + v] * k[i];
          }
          const double d = data.beta[row] * (data.v[row * c.v_dim + v] - r);
          double o = 0;
          for (int i = 0; i < c.k_dim; ++i) {
            s[i * c.v_dim + v] += k[i] * d;
            o += s[i * c.v_dim + v] * q[i];
          }
          out[row * c.v_dim + v] = o;
        }
      }
    }
    first += length;
  }
  return out;
}

TEST(DeltaRule, BitsAndValues) {
  const Feed feed{{41, 1, 18}};
  for (const DeltaCase& c : {DeltaCase{2, 4, 32, 64, false}, DeltaCase{1, 3, 5, 21, false},
                             DeltaCase{2, 2, 16, 100, true}, DeltaCase{1, 2, 128, 128, true}}) {
    const DeltaData data = MakeDelta(c, feed.Total());
    const int64_t decays = c.v_heads * (c.per_key ? c.k_dim : 1);
    const int64_t state_size = int64_t{c.v_heads} * c.k_dim * c.v_dim;
    const int64_t state_stride = state_size + 5;
    const std::vector<float> y = ExpectCutsAlike("delta", [&](Backend& backend, int64_t cut) {
      std::vector<float> all(data.v.size());
      std::vector<float> state = OldState(static_cast<size_t>(3 * state_stride));
      feed.InSteps(cut, [&](const StepPlan& plan) {
        const std::vector<float> q = feed.Gather(plan, data.q, c.k_heads * c.k_dim);
        const std::vector<float> k = feed.Gather(plan, data.k, c.k_heads * c.k_dim);
        const std::vector<float> v = feed.Gather(plan, data.v, c.v_heads * c.v_dim);
        const std::vector<float> g = feed.Gather(plan, data.log_decay, decays);
        const std::vector<float> beta = feed.Gather(plan, data.beta, c.v_heads);
        std::vector<float> out(v.size());
        backend.DeltaRule({&plan,
                           q.data(),
                           k.data(),
                           v.data(),
                           g.data(),
                           beta.data(),
                           out.data(),
                           c.k_heads,
                           c.v_heads,
                           c.k_dim,
                           c.v_dim,
                           c.per_key,
                           {state.data(), state_stride}});
        feed.Scatter(plan, out, c.v_heads * c.v_dim, all);
      });
      for (int64_t s = 0; s < 3; ++s) {
        all.insert(all.end(), state.begin() + s * state_stride,
                   state.begin() + s * state_stride + state_size);
      }
      return all;
    });
    const std::vector<double> expected = DeltaInDouble(c, data, feed);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5) << i;
  }
}

struct MambaCase {
  int heads;
  int dim;
  int groups;
  int state;
};

TEST(MambaScan, BitsAndValues) {
  const Feed feed{{29, 2, 1}};
  for (const MambaCase& c :
       {MambaCase{4, 64, 2, 32}, MambaCase{3, 21, 1, 7}, MambaCase{2, 80, 2, 128}}) {
    const int64_t total = feed.Total();
    const std::vector<float> x = RandomFloats(total * c.heads * c.dim, 1);
    const std::vector<float> b = RandomFloats(total * c.groups * c.state, 2);
    const std::vector<float> cc = RandomFloats(total * c.groups * c.state, 3);
    std::vector<float> dt = RandomFloats(total * c.heads, 4);
    for (float& value : dt) value = 0.2f * std::fabs(value);
    std::vector<float> a = RandomFloats(c.heads, 5);
    for (float& value : a) value = std::fabs(value) + 0.1f;
    const std::vector<float> d = RandomFloats(c.heads, 6);
    const int64_t state_size = int64_t{c.heads} * c.state * c.dim;
    const std::vector<float> y = ExpectCutsAlike("mamba", [&](Backend& backend, int64_t cut) {
      std::vector<float> all(x.size());
      std::vector<float> state = OldState(static_cast<size_t>(3 * state_size));
      feed.InSteps(cut, [&](const StepPlan& plan) {
        const std::vector<float> sx = feed.Gather(plan, x, c.heads * c.dim);
        const std::vector<float> sb = feed.Gather(plan, b, c.groups * c.state);
        const std::vector<float> sc = feed.Gather(plan, cc, c.groups * c.state);
        const std::vector<float> sdt = feed.Gather(plan, dt, c.heads);
        std::vector<float> out(sx.size());
        backend.MambaScan({&plan,
                           sx.data(),
                           sb.data(),
                           sc.data(),
                           sdt.data(),
                           a.data(),
                           d.data(),
                           out.data(),
                           c.heads,
                           c.dim,
                           c.groups,
                           c.state,
                           {state.data(), state_size}});
        feed.Scatter(plan, out, c.heads * c.dim, all);
      });
      all.insert(all.end(), state.begin(), state.end());
      return all;
    });
    int64_t first = 0;
    for (const int64_t length : feed.lengths) {
      for (int head = 0; head < c.heads; ++head) {
        const int group = head / (c.heads / c.groups);
        for (int i = 0; i < c.dim; ++i) {
          std::vector<double> s(static_cast<size_t>(c.state));
          for (int64_t t = first; t < first + length; ++t) {
            const double in = x[(t * c.heads + head) * c.dim + i];
            const double step = dt[t * c.heads + head];
            double sum = d[head] * in;
            for (int j = 0; j < c.state; ++j) {
              const int64_t at = (t * c.groups + group) * c.state + j;
              s[j] = std::exp(-a[head] * step) * s[j] + step * b[at] * in;
              sum += s[j] * cc[at];
            }
            ASSERT_NEAR(y[(t * c.heads + head) * c.dim + i], sum, 3e-5);
          }
        }
      }
      first += length;
    }
  }
}

}  // namespace
}  // namespace tq
