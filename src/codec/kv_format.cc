#include "codec/kv_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"
#include "codec/gaussian.h"
#include "codec/kv_scale.h"
#include "codec/turbo_quant.h"
#include "codec/turbo_quant_encode.h"
#include "tensor/half.h"

namespace tq {
namespace {

constexpr int kFirstComputed = 5;  // bits; narrower codebooks are those of weights
constexpr int kLastComputed = 8;

struct Name {
  KvFormat format;
  const char* name;
  int bits;
};
constexpr Name kNames[] = {
    {KvFormat::kF16, "f16", 16},  {KvFormat::kF32, "f32", 32}, {KvFormat::kBf16, "bf16", 16},
    {KvFormat::kInt8, "int8", 8}, {KvFormat::kTq2, "tq2", 2},  {KvFormat::kTq3, "tq3", 3},
    {KvFormat::kTq4, "tq4", 4},   {KvFormat::kTq5, "tq5", 5},  {KvFormat::kTq6, "tq6", 6},
    {KvFormat::kTq7, "tq7", 7},   {KvFormat::kTq8, "tq8", 8},
};

const Name& NameOf(KvFormat format) { return kNames[static_cast<size_t>(format)]; }

// Lloyd's iteration on the exact normal distribution, as the published cache runs it: from evenly
// spread values, 500 rounds at most. The wide codebooks are not converged then, and must not be.
KvCodebook ComputeCodebook(int bits) {
  constexpr int kRounds = 500;
  constexpr double kLeastMove = 1e-12;
  constexpr double kLeastMass = 1e-30;
  const size_t n = size_t{1} << bits;
  std::vector<double> c(n);
  for (size_t i = 0; i < n; ++i) {
    c[i] = 3.0 * (-1.0 + 2.0 * (static_cast<double>(i) + 0.5) / static_cast<double>(n));
  }
  for (int round = 0; round < kRounds; ++round) {
    double move = 0.0;
    double below = 0.0, pdf_below = 0.0;  // at the lower boundary
    double previous = c[0];
    for (size_t i = 0; i < n; ++i) {
      const bool last = i + 1 == n;
      const double boundary = last ? 0.0 : 0.5 * (previous + c[i + 1]);
      const double upto = last ? 1.0 : GaussianCdf(boundary);
      const double pdf = last ? 0.0 : GaussianPdf(boundary);
      previous = last ? 0.0 : c[i + 1];
      const double mass = upto - below;
      const double centroid = mass > kLeastMass ? (pdf_below - pdf) / mass : c[i];
      move = std::max(move, std::fabs(centroid - c[i]));
      c[i] = centroid;
      below = upto;
      pdf_below = pdf;
    }
    if (move < kLeastMove) break;
  }
  KvCodebook out;
  for (size_t i = 0; i < n; ++i) {
    out.stored.push_back(F16ToF32(F32ToF16(static_cast<float>(c[i]))));
    if (i + 1 < n) out.boundaries.push_back(static_cast<float>(0.5 * (c[i] + c[i + 1])));
  }
  return out;
}

// The upper half of a symmetric codebook: what |x| is rounded to.
struct HalfCodebook {
  size_t size;
  float values[8];
  float boundaries[8];  // from values[i] on to values[i + 1]

  explicit HalfCodebook(const KvCodebook& codebook) : size(codebook.stored.size() / 2) {
    for (size_t i = 0; i < size; ++i) {
      values[i] = codebook.stored[size + i];
      boundaries[i] = i + 1 < size ? codebook.boundaries[size + i] : 0.0f;
    }
  }
};

// Four lanes: every target of the compilers has them.
typedef float Lanes __attribute__((vector_size(16)));
typedef int32_t Mask __attribute__((vector_size(16)));

// sum of (|x| - value)^2 over the group: 4 lanes, element i in lane i % 4, then (0 + 1) + (2 + 3).
template <size_t kSize>
float SquaredError(const HalfCodebook& half, const float* x, size_t n, float scale) {
  Lanes boundaries[kSize], steps[kSize];
  for (size_t k = 0; k + 1 < kSize; ++k) {
    boundaries[k] = Lanes{} + half.boundaries[k] * scale;
    steps[k] = Lanes{} + (half.values[k + 1] - half.values[k]) * scale;
  }
  const Lanes first = Lanes{} + half.values[0] * scale;
  const Mask magnitude = Mask{} + 0x7FFFFFFF;
  Lanes sum = {};
  for (size_t i = 0; i < n; i += 4) {
    Lanes value = {};
    for (size_t lane = 0; lane < 4 && i + lane < n; ++lane) value[lane] = x[i + lane];
    const Lanes size = reinterpret_cast<Lanes>(reinterpret_cast<Mask>(value) & magnitude);
    Lanes rounded = first;
    for (size_t k = 0; k + 1 < kSize; ++k) {
      rounded += reinterpret_cast<Lanes>(static_cast<Mask>(size >= boundaries[k]) &
                                         reinterpret_cast<Mask>(steps[k]));
    }
    Lanes error = size - rounded;
    for (size_t lane = n - i; lane < 4; ++lane) error[lane] = 0.0f;
    sum += error * error;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <size_t kSize>
uint16_t Search(const HalfCodebook& half, const float* x, size_t n, float rms) {
  uint16_t best = KvScaleBits(rms);
  float best_error = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kKvScaleCandidates; ++i) {
    const uint16_t bits = KvScaleCandidate(rms, i);
    const float error = SquaredError<kSize>(half, x, n, F16ToF32(bits));
    if (error < best_error) {
      best = bits;
      best_error = error;
    }
  }
  return best;
}

uint16_t SearchScale(int bits, const float* x, size_t n, float rms) {
  const HalfCodebook half(KvCodebookOf(bits));
  if (bits == 2) return Search<2>(half, x, n, rms);
  if (bits == 3) return Search<4>(half, x, n, rms);
  return Search<8>(half, x, n, rms);
}

// Number of boundaries <= x: the cell of x.
uint8_t CellOf(const std::vector<float>& boundaries, float x) {
  return static_cast<uint8_t>(std::upper_bound(boundaries.begin(), boundaries.end(), x) -
                              boundaries.begin());
}

void EncodeInt8(const float* x, int n, uint8_t* codes, uint16_t* scale) {
  float max = 0.0f;
  for (int i = 0; i < n; ++i) max = std::max(max, std::fabs(x[i]));
  *scale = KvScaleBits(max / 127.0f);
  const float divisor = F16ToF32(*scale);
  for (int i = 0; i < n; ++i) {
    const float q = divisor == 0.0f ? 0.0f : std::nearbyint(x[i] / divisor);
    const float limited = q > 127.0f ? 127.0f : q > -127.0f ? q : -127.0f;  // also a NaN
    codes[i] = static_cast<uint8_t>(static_cast<int>(limited) + 128);
  }
}

constexpr const char* kFormats = "2 to 8, 16, f16, bf16, f32, int8, or tq2 to tq8";

Result<KvFormat> ParseFormat(std::string_view text, std::string_view whole) {
  const std::optional<KvFormat> format = KvFormatFromName(text);
  if (format) return *format;
  if (text == whole) {
    return InvalidArgument(
        fmt::format("expected a KV format ({}), found \"{}\"", kFormats, text.substr(0, 40)));
  }
  return InvalidArgument(fmt::format("\"{}\": expected a KV format ({}), found \"{}\"",
                                     whole.substr(0, 40), kFormats, text.substr(0, 40)));
}

// Without the K or V that a table puts before it.
std::string_view WithoutPrefix(std::string_view text, char upper, char lower) {
  if (!text.empty() && (text[0] == upper || text[0] == lower)) {
    text.remove_prefix(1);
    if (text.starts_with(':')) text.remove_prefix(1);
  }
  return text;
}

}  // namespace

int KvBits(KvFormat format) { return NameOf(format).bits; }
const char* KvFormatName(KvFormat format) { return NameOf(format).name; }

std::optional<KvFormat> KvFormatFromName(std::string_view name) {
  for (const Name& known : kNames) {
    if (name == known.name) return known.format;
  }
  if (name == "16") return KvFormat::kF16;
  if (name == "8") return KvFormat::kInt8;
  if (name.size() == 1 && name[0] >= '2' && name[0] <= '7') {
    return static_cast<KvFormat>(static_cast<int>(KvFormat::kTq2) + (name[0] - '2'));
  }
  return std::nullopt;
}

std::string KvSettingsText(const KvSettings& settings) {
  const auto short_name = [](KvFormat format) -> std::string {
    if (format == KvFormat::kTq8) return ":tq8";
    if (KvIsPacked(format)) return std::to_string(KvBits(format));
    return fmt::format(":{}", KvFormatName(format));
  };
  std::string text = settings.k == settings.v && !KvIsPacked(settings.k)
                         ? KvFormatName(settings.k)
                         : fmt::format("K{}/V{}", short_name(settings.k), short_name(settings.v));
  if (!settings.packed()) return text;
  if (settings.group_size != KvSettings().group_size) {
    text += fmt::format(" group {}", settings.group_size);
  }
  if (settings.min_tokens > 0) {
    text += fmt::format(" first {} {}", settings.min_tokens, KvFormatName(settings.exact));
  }
  return text;
}

Result<KvSettings> ParseKvSettings(std::string_view text, const KvSettings& base) {
  KvSettings settings = base;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    TQ_ASSIGN_OR_RETURN(settings.k, ParseFormat(text, text));
    settings.v = settings.k;
  } else {
    TQ_ASSIGN_OR_RETURN(settings.k,
                        ParseFormat(WithoutPrefix(text.substr(0, slash), 'K', 'k'), text));
    TQ_ASSIGN_OR_RETURN(settings.v,
                        ParseFormat(WithoutPrefix(text.substr(slash + 1), 'V', 'v'), text));
  }
  return settings;
}

int KvGroup(int group_size, int dim) {
  int group = std::min(group_size, dim);
  while (dim % group != 0) group /= 2;
  return group;
}

const KvCodebook& KvCodebookOf(int bits) {
  TQ_CHECK(bits >= 2 && bits <= kLastComputed);
  if (bits < kFirstComputed) {
    static const std::array<KvCodebook, 3> narrow = [] {
      std::array<KvCodebook, 3> all;
      for (size_t i = 0; i < all.size(); ++i) {
        const LloydMaxTable& table = LloydMaxCodebook(4 << i);
        all[i] = {table.stored, table.boundaries};
      }
      return all;
    }();
    return narrow[static_cast<size_t>(bits - 2)];
  }
  static const std::array<KvCodebook, 4> wide = [] {
    std::array<KvCodebook, 4> all;
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = ComputeCodebook(kFirstComputed + static_cast<int>(i));
    }
    return all;
  }();
  return wide[static_cast<size_t>(bits - kFirstComputed)];
}

void KvEncode(KvFormat format, KvScale scale, std::span<const float> x, int group, uint8_t* codes,
              uint16_t* scales) {
  TQ_DCHECK(KvIsPacked(format) && x.size() % static_cast<size_t>(group) == 0);
  const int bits = KvBits(format);
  for (size_t begin = 0; begin < x.size(); begin += static_cast<size_t>(group), ++scales) {
    const float* values = x.data() + begin;
    if (format == KvFormat::kInt8) {
      EncodeInt8(values, group, codes + begin, scales);
      continue;
    }
    const float rms = TurboQuantRms(x.subspan(begin, static_cast<size_t>(group)));
    float divisor = rms;  // not rounded: the reference's
    *scales = KvScaleBits(rms);
    if (scale == KvScale::kSearch && bits < kFirstComputed) {
      *scales = SearchScale(bits, values, static_cast<size_t>(group), rms);
      divisor = F16ToF32(*scales);
    }
    float units[128];
    for (int done = 0; done < group; done += 128) {
      const int n = std::min(group - done, 128);
      for (int i = 0; i < n; ++i) units[i] = values[done + i] / divisor;
      uint8_t* out = codes + begin + done;
      if (bits < kFirstComputed) {
        CountTurboQuantBoundaries(1 << bits, units, n, out);
      } else {
        for (int i = 0; i < n; ++i) out[i] = CellOf(KvCodebookOf(bits).boundaries, units[i]);
      }
    }
  }
}

std::span<const float> KvUnits(KvFormat format) {
  static const std::array<float, 256> integers = [] {
    std::array<float, 256> all{};
    for (int i = 0; i < 256; ++i) all[static_cast<size_t>(i)] = static_cast<float>(i - 128);
    return all;
  }();
  if (format == KvFormat::kInt8) return integers;
  return KvCodebookOf(KvBits(format)).stored;
}

}  // namespace tq
