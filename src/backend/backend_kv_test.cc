// Attention over compressed pages: the same bytes and bits on every backend, instruction set and
// thread count, the values of f64 arithmetic on what the pages hold, and the same alone, after a
// copy and after a cut.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/kv_rows.h"
#include "backend/op_matrix.h"

namespace tq {
namespace {

constexpr int kPrefix = -1;  // v_dim: values are the first half of the keys

struct KvCase {
  std::string kv;  // "k/v"
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int v_dim;
  std::vector<int64_t> contexts;
  std::vector<int64_t> num_tokens;
  int64_t min_tokens = 0;
  int window = 0;
  int keep = 0;
  bool sinks = false;
  bool causal = true;
  int group_size = 64;

  KvLayout layout(KvFormat exact = KvFormat::kF16) const {
    KvSettings settings;
    settings.k = *KvFormatFromName(kv.substr(0, kv.find('/')));
    settings.v = *KvFormatFromName(kv.substr(kv.find('/') + 1));
    settings.exact = exact;
    settings.min_tokens = min_tokens;
    settings.group_size = group_size;
    if (v_dim == kPrefix) {
      return {settings, num_kv_heads, head_dim, head_dim / 4 * 2, KvValues::kKeyPrefix};
    }
    return {settings, num_kv_heads, head_dim, v_dim, KvValues::kOwn};
  }
  std::string name() const {
    return kv + " D=" + std::to_string(head_dim) + " Dv=" + std::to_string(v_dim) + " first " +
           std::to_string(min_tokens) + " window " + std::to_string(window) + " keep " +
           std::to_string(keep);
  }
};

struct KvData : PagedPlans {
  std::vector<float> k, v, q, sinks;
  std::vector<uint64_t> selected;
  int64_t stride = 0;
};

KvData MakeData(const KvCase& c) {
  KvData data;
  static_cast<PagedPlans&>(data) = MakePagedPlans(c.contexts, c.num_tokens);
  const KvLayout layout = c.layout();
  const int64_t rows = data.fill.num_tokens() * c.num_kv_heads;
  data.k = RandomFloats(rows * c.head_dim, 1);
  data.v = RandomFloats(rows * layout.v_head_dim, 2);
  data.q = RandomFloats(data.step.num_tokens() * c.num_heads * c.head_dim, 3);
  for (float& x : data.q) x *= 4.0f;  // distributions with a few large probabilities
  if (c.sinks) data.sinks = RandomFloats(c.num_heads, 4);
  if (c.keep == 0) return data;
  data.stride = *std::max_element(c.contexts.begin(), c.contexts.end()) / 64 + 2;
  std::mt19937 random(5);
  data.selected.resize(static_cast<size_t>(data.step.num_tokens() * data.stride));
  for (const SequencePlan& sequence : data.step.sequences) {
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      uint64_t* bits = data.selected.data() + (sequence.first_token + i) * data.stride;
      const int64_t position = sequence.start_position + i;
      for (int64_t j = 0; j <= position; ++j) {
        if (random() % static_cast<uint32_t>(c.keep) == 0 || j == position) {
          bits[j / 64] |= uint64_t{1} << (j % 64);
        }
      }
    }
  }
  return data;
}

// Pages of a layer. Exact slots are the pages' ids, backwards.
struct Pages {
  KvLayout layout;
  Buffer packed;
  Buffer exact;
  std::vector<int32_t> slots;

  Pages(const KvLayout& l, int32_t num_pages) : layout(l) {
    const auto allocate = [&](int64_t page_bytes) {
      Buffer buffer =
          std::move(Buffer::Allocate(static_cast<size_t>(num_pages * page_bytes))).value();
      std::memset(buffer.data(), 0xFF, buffer.size());  // what no token fills must not be read
      return buffer;
    };
    packed = allocate(layout.page_bytes());
    exact = allocate(layout.exact_layout().page_bytes());
    for (int32_t i = 0; i < num_pages; ++i) slots.push_back(num_pages - 1 - i);
  }
  KvExactPages exact_pages() const { return {exact.data(), slots.data()}; }
};

void Append(Backend& backend, const KvData& data, Pages& pages) {
  const bool own = pages.layout.values == KvValues::kOwn;
  backend.KvAppend({&data.fill, pages.layout, pages.packed.data(), data.k.data(),
                    own ? data.v.data() : nullptr, pages.exact_pages()});
}

std::vector<float> Attend(Backend& backend, const KvCase& c, const KvData& data,
                          const Pages& pages) {
  std::vector<float> out(
      static_cast<size_t>(data.step.num_tokens() * c.num_heads * pages.layout.v_head_dim), -1.0f);
  Scratch scratch;
  backend.Attention({&data.step, pages.layout, pages.packed.data(), data.q.data(), out.data(),
                     c.num_heads, 1.0f / std::sqrt(static_cast<float>(c.head_dim)), c.window,
                     c.causal, c.sinks ? data.sinks.data() : nullptr,
                     c.keep > 0 ? data.selected.data() : nullptr, data.stride, pages.exact_pages()},
                    scratch);
  return out;
}

std::vector<float> FillAndAttend(Backend& backend, const KvCase& c, const KvData& data) {
  Pages pages(c.layout(), data.num_pages);
  Append(backend, data, pages);
  return Attend(backend, c, data, pages);
}

const std::vector<KvCase>& Cases() {
  static const std::vector<KvCase> cases = [] {
    std::vector<KvCase> all = {
        {"4/4", 4, 2, 64, 64, {1}, {1}},
        {"4/4", 8, 2, 128, 128, {600, 3, 64}, {1, 3, 1}},
        {"4/3", 4, 1, 128, 128, {130}, {130}, 64},
        {"8/3", 8, 2, 128, 128, {700, 9}, {20, 9}, 100},
        {"8/8", 6, 2, 64, 64, {600}, {11}},
        {"2/2", 3, 3, 256, 256, {90}, {17}},
        {"3/4", 4, 2, 96, 96, {200}, {5}},
        {"4/2", 4, 2, 192, 128, {200}, {5}},
        {"8/4", 4, 2, 128, 64, {300}, {3}},
        // 20- and 28-families, small groups
        {"4/4", 4, 2, 80, 80, {200}, {7}},
        {"3/3", 4, 2, 112, 112, {200}, {7}, 1},
        {"8/8", 4, 2, 80, 80, {70}, {3}},
        // groups without an integer kernel
        {"4/4", 4, 2, 72, 72, {200}, {7}, 64},
        {"8/3", 4, 2, 40, 40, {130}, {70}},
        {"4/4", 2, 1, 22, 22, {70}, {3}},
        // other widths, mixtures
        {"5/6", 4, 2, 64, 64, {200}, {7}},
        {"tq7/tq8", 4, 2, 64, 64, {130}, {3}, 64},
        {"16/4", 4, 2, 64, 64, {200}, {7}, 64},
        {"4/16", 4, 2, 64, 64, {200}, {7}, 64},
        {"bf16/bf16", 4, 2, 64, 64, {700}, {20}},
        {"f32/4", 4, 2, 80, 80, {200}, {7}},
        {"bf16/8", 4, 2, 64, 64, {200}, {7}},
        // blocks of 256 dims
        {"4/4", 2, 1, 512, 512, {700}, {3}},
        {"4/4", 2, 1, 576, 576, {70}, {3}},
        {"4/4", 2, 2, 320, 320, {1100}, {1}, 64, 512},
        // windows, sinks, no causality, selections
        {"4/4", 4, 2, 64, 64, {700}, {40}, 64, 100},
        {"8/3", 4, 2, 64, 64, {700}, {40}, 0, 1},
        {"4/3", 8, 2, 64, 64, {600, 3}, {2, 3}, 64, 30, 0, true},
        {"4/4", 4, 2, 64, 64, {150, 20}, {40, 20}, 64, 0, 0, false, false},
        {"4/4", 4, 2, 64, 64, {700, 66}, {20, 1}, 64, 0, 3},
        {"8/8", 4, 1, 64, 64, {300}, {30}, 0, 90, 2, true},
        // keys that hold the values
        {"4/4", 16, 1, 96, kPrefix, {600, 70, 1}, {3, 1, 1}, 64},
        {"8/8", 20, 1, 72, kPrefix, {1100}, {2}},
        {"3/3", 6, 2, 36, kPrefix, {130}, {90}, 64, 50},
        {"bf16/bf16", 6, 1, 64, kPrefix, {130}, {9}},
        {"4/4", 16, 1, 64, kPrefix, {1500}, {5}, 64, 0, 200},
    };
    for (const int group : {16, 32, 128}) {
      all.push_back({"4/3", 4, 2, 128, 128, {200}, {5}, 0, 0, 0, false, true, group});
    }
    return all;
  }();
  return cases;
}

TEST(KvAttention, SameBits) {
  for (const KvCase& c : Cases()) {
    const KvData data = MakeData(c);
    ExpectSameBits(c.name(), [&](Backend& backend) { return FillAndAttend(backend, c, data); });
  }
}

std::unique_ptr<Backend> MakeParity(const BackendChoice& choice) {
  BackendOptions options;
  options.num_threads = 2;
  options.isa = choice.isa;
  options.activations = ActivationMode::kF32;
  return std::move(MakeBackend(choice.backend, options)).value();
}

TEST(KvAttention, SameBitsInParityMode) {
  for (const KvCase& c : Cases()) {
    const KvData data = MakeData(c);
    std::vector<float> expected;
    for (const BackendChoice& choice : AvailableBackends()) {
      const std::vector<float> found = FillAndAttend(*MakeParity(choice), c, data);
      if (expected.empty()) expected = found;
      EXPECT_EQ(FirstDifferentBits(expected, found), -1) << c.name() << " " << choice.isa;
    }
  }
}

// What a page holds of one row, rotated back.
std::vector<float> StoredRow(const KvTile& tile, const KvRotation& rotation, const float* row) {
  std::vector<float> x(row, row + tile.dim);
  for (const KvRotationPart& part : rotation) {
    float* p = x.data() + part.offset;
    for (int64_t i = 0; i < part.dim; ++i) p[i] *= part.signs[i];
    HadamardForward({p, static_cast<size_t>(part.dim)});
  }
  std::vector<std::byte> bytes(static_cast<size_t>(tile.bytes()), std::byte{0xFF});
  KvRowWork work;
  StoreKvRow(tile, bytes.data(), 13, x.data(), work);
  std::vector<uint8_t> codes(x.size());
  std::vector<float> scales(x.size());
  LoadKvRow(tile, bytes.data(), 13, codes.data(), scales.data(), x.data());
  UnrotateKv(rotation, x.data());
  return x;
}

struct Stored {
  std::vector<std::vector<float>> k, v;  // [token * KV heads]
};

Stored StoreAll(const KvCase& c, const KvData& data, const KvLayout& layer) {
  Stored stored;
  KvRotations rotations;
  const KvRotation& k_rotation = rotations.OfKeys(layer);
  const KvRotation& v_rotation = rotations.OfValues(layer);
  for (const SequencePlan& sequence : data.fill.sequences) {
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      const KvLayout layout =
          i / kPageTokens < layer.num_exact_pages() ? layer.exact_layout() : layer;
      for (int64_t g = 0; g < c.num_kv_heads; ++g) {
        const int64_t row = (sequence.first_token + i) * c.num_kv_heads + g;
        stored.k.push_back(
            StoredRow(layout.k_tile(), k_rotation, data.k.data() + row * c.head_dim));
        stored.v.push_back(
            layout.values == KvValues::kOwn
                ? StoredRow(layout.v_tile(), v_rotation, data.v.data() + row * layout.v_head_dim)
                : stored.k.back());
      }
    }
  }
  return stored;
}

// The outputs of all heads of one token in f64.
std::vector<double> Exact(const KvCase& c, const KvData& data, const Stored& stored, size_t s,
                          int64_t t) {
  const SequencePlan& sequence = data.step.sequences[s];
  const int64_t v_dim = c.layout().v_head_dim;
  const int64_t position = sequence.start_position + t;
  const int64_t newest = c.causal ? position : sequence.start_position;
  const int64_t last = c.causal ? position : c.contexts[s] - 1;
  std::vector<double> out;
  for (int head = 0; head < c.num_heads; ++head) {
    const float* q = data.q.data() + ((sequence.first_token + t) * c.num_heads + head) * c.head_dim;
    std::vector<double> sum(static_cast<size_t>(v_dim));
    double total = c.sinks ? std::exp(double{data.sinks[static_cast<size_t>(head)]}) : 0;
    for (int64_t j = 0; j <= last; ++j) {
      if (c.window > 0 && newest - j >= c.window) continue;
      const uint64_t* bits = data.selected.data() + (sequence.first_token + t) * data.stride;
      if (c.keep > 0 && (bits[j / 64] >> (j % 64) & 1) == 0) continue;
      const auto row =
          static_cast<size_t>((data.fill.sequences[s].first_token + j) * c.num_kv_heads +
                              head / (c.num_heads / c.num_kv_heads));
      double score = 0;
      for (size_t d = 0; d < stored.k[row].size(); ++d) score += double{q[d]} * stored.k[row][d];
      const double p = std::exp(score / std::sqrt(static_cast<double>(c.head_dim)));
      total += p;
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += p * stored.v[row][d];
    }
    for (const double x : sum) out.push_back(x / total);
  }
  return out;
}

// Relative squared error of all outputs.
double ErrorOf(const KvCase& c, const KvData& data, const Stored& stored,
               const std::vector<float>& found) {
  double error = 0, energy = 0;
  size_t at = 0;
  for (size_t s = 0; s < c.contexts.size(); ++s) {
    for (int64_t t = 0; t < c.num_tokens[s]; ++t) {
      for (const double x : Exact(c, data, stored, s, t)) {
        error += (x - found[at]) * (x - found[at]);
        energy += x * x;
        ++at;
      }
    }
  }
  EXPECT_EQ(at, found.size());
  return error / energy;
}

// Parity mode computes with what the pages hold; fast mode adds the rounding of queries and
// weights, which stays far below the error of the codes (.009 at 4 bits, .00004 at 8).
TEST(KvAttention, AgainstF64) {
  for (const KvCase& c : Cases()) {
    const KvData data = MakeData(c);
    const Stored stored = StoreAll(c, data, c.layout());
    EXPECT_LT(ErrorOf(c, data, stored, FillAndAttend(*MakeParity({"ref", "scalar"}), c, data)),
              1e-10)
        << c.name();
    EXPECT_LT(ErrorOf(c, data, stored, FillAndAttend(*MakeRef(), c, data)), 2e-3) << c.name();
  }
}

// Bytes of a page, appended at once or token by token, on every backend.
TEST(KvAttention, SameBytes) {
  for (const KvCase& c : Cases()) {
    KvData data = MakeData(c);
    std::vector<std::byte> expected;
    for (const BackendChoice& choice : AvailableBackends()) {
      for (const bool alone : {false, true}) {
        const std::unique_ptr<Backend> backend = MakeTestBackend(choice.backend, choice.isa, 2);
        Pages pages(c.layout(), data.num_pages);
        if (alone) {
          KvData one = data;
          for (const SequencePlan& sequence : data.fill.sequences) {
            for (int64_t i = 0; i < sequence.num_tokens; ++i) {
              SequencePlan token = sequence;
              token.first_token += i;
              token.start_position += i;
              token.num_tokens = 1;
              one.fill.sequences = {token};
              Append(*backend, one, pages);
            }
          }
        } else {
          Append(*backend, data, pages);
        }
        std::vector<std::byte> found(pages.packed.data(),
                                     pages.packed.data() + pages.packed.size());
        found.insert(found.end(), pages.exact.data(), pages.exact.data() + pages.exact.size());
        if (expected.empty()) expected = found;
        EXPECT_TRUE(found == expected) << c.name() << " " << choice.isa << " alone " << alone;
      }
    }
  }
}

// A cut page that is written on holds what it held when written at once.
TEST(KvAttention, CutAndWrittenAgain) {
  for (const KvCase& c : Cases()) {
    const KvData data = MakeData(c);
    KvData other = data;
    for (float& x : other.k) x = 1.0f - x;
    for (float& x : other.v) x = 2.0f * x;
    const std::unique_ptr<Backend> backend = MakeTestBackend("", "", 2);
    const std::vector<float> expected = FillAndAttend(*backend, c, data);
    Pages pages(c.layout(), data.num_pages);
    Append(*backend, other, pages);
    Append(*backend, data, pages);
    EXPECT_EQ(FirstDifferentBits(expected, Attend(*backend, c, data, pages)), -1) << c.name();
  }
}

// A query alone gives what it gives among others.
TEST(KvAttention, CompanyDoesNotMatter) {
  for (const KvCase& c : Cases()) {
    if (!c.causal) continue;  // the step's tokens see each other
    const KvData data = MakeData(c);
    const std::unique_ptr<Backend> backend = MakeTestBackend("", "", 2);
    Pages pages(c.layout(), data.num_pages);
    Append(*backend, data, pages);
    const std::vector<float> expected = Attend(*backend, c, data, pages);
    const int64_t row = int64_t{c.num_heads} * pages.layout.v_head_dim;
    const int64_t q_row = int64_t{c.num_heads} * c.head_dim;
    for (const int64_t token : {int64_t{0}, c.num_tokens[0] / 2, c.num_tokens[0] - 1}) {
      KvData alone = data;
      SequencePlan one = data.step.sequences[0];
      one.start_position += token;
      one.num_tokens = 1;
      one.first_token = 0;
      alone.step.sequences = {one};
      alone.step.ids.resize(1);
      alone.q.assign(data.q.begin() + token * q_row, data.q.begin() + (token + 1) * q_row);
      if (c.keep > 0) {
        alone.selected.erase(alone.selected.begin(), alone.selected.begin() + token * data.stride);
      }
      const std::vector<float> found = Attend(*backend, c, alone, pages);
      EXPECT_EQ(
          std::memcmp(found.data(), expected.data() + token * row, static_cast<size_t>(row) * 4), 0)
          << c.name() << " token " << token;
    }
  }
}

TEST(KvLayout, BytesPerToken) {
  const auto bytes = [](const char* kv, int dim) {
    const KvCase c{kv, 1, 1, dim, dim, {}, {}};
    return static_cast<double>(c.layout().page_bytes()) / kPageTokens;
  };
  EXPECT_EQ(bytes("16/16", 128), 512);
  EXPECT_EQ(bytes("4/4", 128), 136);
  EXPECT_EQ(bytes("8/3", 128), 184);
  EXPECT_EQ(bytes("8/8", 128), 264);
  EXPECT_EQ(bytes("5/5", 128), 168);
  EXPECT_EQ(bytes("2/2", 64), 36);
}

}  // namespace
}  // namespace tq
