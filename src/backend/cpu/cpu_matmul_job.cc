#include "backend/cpu/cpu_matmul_job.h"

#include <algorithm>
#include <cstring>

namespace tq {
namespace {

// With fewer tokens wide passes are not faster.
constexpr int64_t kMinWideTokens = 16;
// What the kernel leaves out of every integer: the sums start with this times the sum of q.
int OmittedInteger(const CpuWeight& weight, const IntOps& ints, bool wide) {
  if (wide) return weight.layout_bits() == 8 ? weight.grid().offset : 0;
  if (weight.layout_bits() == 8) return weight.grid().offset + (ints.unsigned_bytes ? 0 : 128);
  const auto& integers = weight.integers().integers;
  if (!ints.unsigned_table) return 0;
  return std::min<int>(0, *std::min_element(integers.begin(), integers.end()));
}

// Both matrices see the same activations in the same form: experts of a stack, for a single token.
bool PrepareAlike(const MatMulJob& a, const MatMulJob& b) {
  const CpuWeight& v = *a.weight;
  const CpuWeight& w = *b.weight;
  if (a.args->x != b.args->x || a.args->num_tokens != b.args->num_tokens) return false;
  if (v.cols() != w.cols() || v.rotated() != w.rotated() || v.integer() != w.integer())
    return false;
  if (v.rotated() && v.signs() != w.signs()) return false;
  if (!v.integer()) return true;
  return a.is_grid() == b.is_grid() && v.group() == w.group() &&
         v.activation_block() == w.activation_block() && a.omitted == b.omitted;
}

// Where token `token` lives among the passes of up to 8 tokens.
struct Place {
  int64_t first;  // token of its pass
  int64_t token_in_pass;
  int64_t tokens_in_pass;
};

Place PlaceOf(int64_t token, int64_t num_tokens) {
  const int64_t first = token / kMaxTokensPerPass * kMaxTokensPerPass;
  return {first, token - first, std::min(kMaxTokensPerPass, num_tokens - first)};
}

// Of a group: at most 128 codes, so 16 bits hold the sum and a vector twice as many lanes.
int32_t SumOf(const int8_t* codes, int64_t n) {
  int16_t sum = 0;
  for (int64_t k = 0; k < n; ++k) sum = static_cast<int16_t>(sum + codes[k]);
  return sum;
}

// The same for a wide pass. codes null: a token that fills a pass up.
void PackWideToken(const MatMulJob& job, int64_t token, const int8_t* codes, const float* scales) {
  const CpuWeight& weight = *job.weight;
  const int64_t cols = weight.cols();
  const int64_t group = weight.group();
  const int64_t width = std::min<int64_t>(group, 64);
  const int64_t first = token / kWideTokensAtOnce * kWideTokensAtOnce;  // of its call
  const int64_t pass = (token - first) / kWideTokens;
  const int64_t slot = token % kWideTokens;
  const int64_t passes = WidePasses(std::min(kWideTokensAtOnce, job.args->num_tokens - first));
  int8_t* q = job.q + first / kWideTokens * WidePassBytes(cols) +
              pass * kWideTokens * kWideColumns + slot * width;
  for (int64_t col = 0; col < cols; col += kWideColumns) {
    int8_t* to = q + col * passes * kWideTokens;
    const int64_t end = std::min(cols, col + kWideColumns);
    for (int64_t k = col; k < end; k += width, to += width * kWideTokens) {
      if (codes == nullptr) {
        std::memset(to, 0, static_cast<size_t>(width));
      } else if (width == 64) {  // a constant, so that it is no call
        std::memcpy(to, codes + k, 64);
      } else {
        std::memcpy(to, codes + k, static_cast<size_t>(width));
      }
    }
  }
  const int64_t all = token / kWideTokens;
  float* sx = job.sx + all * job.num_blocks() * kWideTokens + slot;
  for (int64_t b = 0; b < job.num_blocks(); ++b) {
    sx[b * kWideTokens] = codes == nullptr ? 0.0f : scales[b];
  }
  if (!job.is_grid() || codes == nullptr) return;
  const int64_t at = all * job.num_groups() * kWideTokens + slot;
  for (int64_t g = 0; g < job.num_groups(); ++g) {
    const int32_t sum = SumOf(codes + g * group, group);
    job.corr[at + g * kWideTokens] = job.omitted * sum;
    job.qsum[at + g * kWideTokens] = sum;
  }
}

// Spreads one token's codes, scales and group sums over its pass.
void PackToken(const MatMulJob& job, int64_t token, const int8_t* codes, const float* scales) {
  if (job.wide) return PackWideToken(job, token, codes, scales);
  const CpuWeight& weight = *job.weight;
  const int64_t cols = weight.cols();
  const int64_t group = weight.group();
  const Place place = PlaceOf(token, job.args->num_tokens);
  int8_t* q = job.q + place.first * cols;
  if (q != codes) {
    for (int64_t k = 0; k < cols; k += 4) {
      std::memcpy(q + k * place.tokens_in_pass + place.token_in_pass * 4, codes + k, 4);
    }
  }
  float* sx = job.sx + place.first * job.num_blocks();
  for (int64_t b = 0; b < job.num_blocks(); ++b) {
    sx[b * place.tokens_in_pass + place.token_in_pass] = scales[b];
  }
  const int64_t at = place.first * job.num_groups() + place.token_in_pass;
  for (int64_t g = 0; g < job.num_groups(); ++g) {
    const int32_t sum = SumOf(codes + g * group, group);
    job.corr[at + g * place.tokens_in_pass] = job.omitted * sum;
    if (job.is_grid()) job.qsum[at + g * place.tokens_in_pass] = sum;
  }
}

}  // namespace

MatMulJob MakeMatMulJob(const MatMulArgs& args, std::span<const MatMulJob> earlier,
                        const IntOps& ints, Scratch& scratch) {
  MatMulJob job{};
  job.args = &args;
  job.weight = static_cast<const CpuWeight*>(args.weight);
  if (job.weight->integer()) {
    job.wide = ints.matmul_wide != nullptr && args.num_tokens >= kMinWideTokens;
    job.omitted = OmittedInteger(*job.weight, ints, job.wide);
  }
  constexpr size_t kLookBack = 4;
  for (size_t i = earlier.size(); i > 0 && i + kLookBack > earlier.size(); --i) {
    const MatMulJob& other = earlier[i - 1];
    if (!PrepareAlike(other, job)) continue;
    MatMulJob same = other;
    same.args = job.args;
    same.weight = job.weight;
    same.is_prepared = true;
    return same;
  }
  const int64_t cols = job.weight->cols();
  if (job.weight->integer()) {
    const int64_t tokens = job.wide ? WidePasses(args.num_tokens) * kWideTokens : args.num_tokens;
    const int64_t q_bytes =
        job.wide ? WidePasses(args.num_tokens) * WidePassBytes(cols) : tokens * cols;
    job.q = scratch.Alloc<int8_t>(static_cast<size_t>(q_bytes));
    job.sx = scratch.Alloc<float>(static_cast<size_t>(tokens * job.num_blocks()));
    job.corr = scratch.Alloc<int32_t>(static_cast<size_t>(tokens * job.num_groups()));
    job.qsum = job.is_grid()
                   ? scratch.Alloc<int32_t>(static_cast<size_t>(tokens * job.num_groups()))
                   : job.corr;
  } else {
    job.ldx = (cols + 15) / 16 * 16;
    job.x = scratch.Alloc<float>(static_cast<size_t>(args.num_tokens * job.ldx));
  }
  return job;
}

void PrepareToken(const MatMulJob& job, const CpuKernels& kernels, int64_t token,
                  const MatMulWorkspace& work) {
  const CpuWeight& weight = *job.weight;
  const int64_t cols = weight.cols();
  const float* x = job.args->x + token * cols;
  float* row = weight.integer() ? work.row : job.x + token * job.ldx;
  if (!weight.integer() || weight.rotated()) std::copy(x, x + cols, row);
  if (weight.rotated()) {
    kernels.floats.rotate_row(row, weight.signs(), cols, weight.hadamard().m,
                              weight.hadamard().pow2);
    x = row;
  }
  if (!weight.integer()) return;
  // A single token's pass has the order of the plain row.
  const bool alone = !job.wide && PlaceOf(token, job.args->num_tokens).tokens_in_pass == 1;
  int8_t* codes = alone ? job.q + token * cols : work.codes;
  float* scales = alone ? job.sx + token * job.num_blocks() : work.scales;
  kernels.floats.quantize_row(x, cols, weight.activation_block(), codes, scales);
  PackToken(job, token, codes, scales);
  if (!job.wide || token + 1 != job.args->num_tokens) return;
  for (int64_t t = token + 1; t % kWideTokens != 0; ++t) PackWideToken(job, t, nullptr, nullptr);
}

}  // namespace tq
