#include "model/rope.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/math.h"

namespace tq {
namespace {

constexpr double kMostPositions = 1 << 30;
constexpr double kPi = 3.14159265358979323846;

struct Scaling {
  std::string type;
  double factor = 1.0;
  double original = 0;  // original_max_position_embeddings
};

void ApplyLlama3(ConfigReader& dict, const Scaling& scaling, std::vector<double>& inv) {
  const double low = dict.Number("low_freq_factor", 1.0);
  const double high = dict.Number("high_freq_factor", 4.0);
  const double original = scaling.original > 0 ? scaling.original : 8192.0;
  if (!(high > low)) {
    dict.Fail(Corrupt(dict.where() + ": expected high_freq_factor > low_freq_factor"));
    return;
  }
  for (double& f : inv) {
    const double wavelength = 2 * kPi / f;
    if (wavelength > original / low) {
      f /= scaling.factor;
    } else if (wavelength >= original / high) {
      const double s = (original / wavelength - low) / (high - low);
      f *= (1 - s) / scaling.factor + s;
    }
  }
}

double YarnMagnitude(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * LogF64(scale) + 1.0;
}

double ApplyYarn(ConfigReader& dict, const Scaling& scaling, double theta, int rotary_dim,
                 std::vector<double>& inv) {
  const auto r = static_cast<double>(rotary_dim);
  const auto correction = [&](double rotations) {
    return r * LogF64(scaling.original / (2 * kPi * rotations)) / (2 * LogF64(theta));
  };
  double lo = correction(dict.Number("beta_fast", 32));
  double hi = correction(dict.Number("beta_slow", 1));
  if (dict.Bool("truncate", true)) {
    lo = std::floor(lo);
    hi = std::ceil(hi);
  }
  lo = std::max(lo, 0.0);
  hi = std::min(hi, r - 1);
  if (lo == hi) hi += 0.001;
  for (size_t j = 0; j < inv.size(); ++j) {
    const double ramp = std::clamp((static_cast<double>(j) - lo) / (hi - lo), 0.0, 1.0);
    inv[j] = inv[j] / scaling.factor * ramp + inv[j] * (1 - ramp);
  }
  const double mscale = dict.Number("mscale", 0);
  const double mscale_all_dim = dict.Number("mscale_all_dim", 0);
  if (dict.Has("attention_factor")) return dict.Number("attention_factor", 1.0);
  if (mscale != 0 && mscale_all_dim != 0) {
    return YarnMagnitude(scaling.factor, mscale) / YarnMagnitude(scaling.factor, mscale_all_dim);
  }
  return YarnMagnitude(scaling.factor, 1.0);
}

// GGUF files carry the divisors themselves.
void ApplyFactors(ConfigReader& dict, std::vector<double>& inv) {
  const Json* factors = dict.Raw("factors");
  if (factors == nullptr || !factors->is_array() || factors->size() != inv.size()) {
    dict.Fail(Corrupt(dict.where() + ": factors: expected a list of " + std::to_string(inv.size()) +
                      " numbers"));
    return;
  }
  for (size_t j = 0; j < inv.size(); ++j) {
    const Json& f = (*factors)[j];
    if (!f.is_number() || !(f.get<double>() > 0)) {
      dict.Fail(Corrupt(dict.where() + ": factors: expected positive numbers, found " + f.dump()));
      return;
    }
    inv[j] /= f.get<double>();
  }
}

// mrope: counts of pairs that turn by time, height and width; one after another, or dealt out in
// turn until an axis has its count (the rest: time).
std::vector<uint8_t> ReadAxes(ConfigReader& dict, size_t num_pairs) {
  const bool interleaved = dict.Bool("mrope_interleaved", false);
  const std::vector<int64_t> section = dict.IntList("mrope_section");
  if (section.empty()) return {};
  int64_t sum = 0;
  std::string found;
  for (const int64_t count : section) {
    found += (found.empty() ? "" : ", ") + std::to_string(count);
    // Not above the whole: the sum cannot wrap.
    sum += count >= 0 && count <= static_cast<int64_t>(num_pairs) ? count : int64_t{1} << 32;
  }
  if (section.size() != kPositionAxes || sum != static_cast<int64_t>(num_pairs)) {
    dict.Fail(Corrupt(dict.where() + ": mrope_section: expected " + std::to_string(kPositionAxes) +
                      " counts that make up " + std::to_string(num_pairs) +
                      " (half of the rotary dims), found [" + found + "]"));
    return {};
  }
  std::vector<uint8_t> axes(num_pairs, 0);
  for (size_t j = 0; j < num_pairs; ++j) {
    const auto pair = static_cast<int64_t>(j);
    if (interleaved) {
      const size_t turn = j % kPositionAxes;
      if (pair < kPositionAxes * section[turn]) axes[j] = static_cast<uint8_t>(turn);
    } else {
      axes[j] = pair < section[0] ? 0 : pair < section[0] + section[1] ? 1 : 2;
    }
  }
  return axes;
}

}  // namespace

RopeSpec RopeFromDict(ConfigReader& reader, const Json* json, double theta, int head_dim,
                      const RopeDefaults& defaults) {
  RopeSpec spec;
  const Json none = Json::object();
  ConfigReader dict(json != nullptr ? *json : none, reader.where() + ": rope");
  theta = dict.Number("rope_theta", theta);
  Scaling scaling;
  scaling.type = dict.String("rope_type", dict.String("type", "default"));
  dict.Ignore({"type", "finetuned", "llama_4_scaling_beta"});
  scaling.factor = dict.Number("factor", 1.0);
  scaling.original = dict.Number("original_max_position_embeddings",
                                 static_cast<double>(defaults.max_position_embeddings));
  const bool proportional = scaling.type == "proportional";
  const double partial = dict.Number("partial_rotary_factor", defaults.partial_rotary_factor);
  const bool in_range = partial > 0.0 && partial <= 1.0;  // before the cast: it must fit an int
  const int rotated = in_range ? static_cast<int>(head_dim * partial) / 2 * 2 : 0;
  // "proportional" pairs dims over the whole head and leaves the rest of the frequencies at zero.
  const int rotary_dim = proportional ? head_dim : rotated;
  if (!(theta > 1.0) || !(scaling.factor >= 1.0) || rotated < 2) {
    reader.Fail(
        Corrupt(dict.where() +
                ": expected rope_theta > 1, factor >= 1 and 0 < partial_rotary_factor <= 1"));
    return spec;
  }
  std::vector<double> inv(static_cast<size_t>(rotary_dim / 2));
  spec.axes = ReadAxes(dict, inv.size());
  for (size_t j = 0; j < inv.size(); ++j) {
    inv[j] = PowF64(theta, -2.0 * static_cast<double>(j) / rotary_dim);
  }
  double attention_factor = 1.0;
  if (scaling.type == "linear") {
    for (double& f : inv) f /= scaling.factor;
  } else if (proportional) {
    for (size_t j = 0; j < inv.size(); ++j) {
      inv[j] = static_cast<int>(j) < rotated / 2 ? inv[j] / scaling.factor : 0.0;
    }
  } else if (scaling.type == "llama3") {
    ApplyLlama3(dict, scaling, inv);
  } else if (scaling.type == "yarn" || scaling.type == "deepseek_yarn") {
    attention_factor = ApplyYarn(dict, scaling, theta, rotary_dim, inv);
    const double window = scaling.original * scaling.factor;
    if (window > 0 && window <= kMostPositions) spec.max_positions = static_cast<int64_t>(window);
  } else if (scaling.type == "tq_factors") {
    ApplyFactors(dict, inv);
  } else if (scaling.type != "default") {
    reader.Fail(
        Unsupported(dict.where() +
                    ": expected rope_type default, linear, llama3, yarn or proportional, found \"" +
                    scaling.type + "\""));
    return spec;
  }
  for (const std::string& key : dict.UnreadKeys()) {
    dict.Fail(Unsupported(dict.where() + ": key \"" + key + "\" is not understood for rope_type " +
                          scaling.type + " and may change the maths"));
  }
  reader.Fail(dict.status());
  for (const double f : inv) spec.inv_freq.push_back(static_cast<float>(f));
  spec.attention_factor = static_cast<float>(attention_factor);
  return spec;
}

RopeSpec ReadRope(ConfigReader& reader, int head_dim, const RopeDefaults& defaults) {
  const double theta = reader.Number("rope_theta", defaults.theta);
  RopeDefaults with_partial = defaults;
  with_partial.partial_rotary_factor =
      reader.Number("partial_rotary_factor", defaults.partial_rotary_factor);
  const Json* dict = reader.Raw("rope_parameters");
  const Json* scaling = reader.Raw("rope_scaling");
  if (dict == nullptr) dict = scaling;
  return RopeFromDict(reader, dict, theta, head_dim, with_partial);
}

const Json* RopeDictOf(ConfigReader& reader, std::string_view layer_type) {
  const Json* all = reader.Raw("rope_parameters");
  if (all == nullptr || !all->is_object()) return nullptr;
  const auto found = all->find(std::string(layer_type));
  return found != all->end() ? &*found : nullptr;
}

RopeTable MakeRopeTable(const RopeSpec& spec, std::span<const int32_t> positions,
                        int64_t num_tokens, Scratch& scratch) {
  const size_t half = spec.inv_freq.size();
  const auto n = static_cast<size_t>(num_tokens);
  const bool one_axis = positions.size() == n || spec.axes.empty();
  float* cos = scratch.Alloc<float>(n * half);
  float* sin = scratch.Alloc<float>(n * half);
  for (size_t t = 0; t < n; ++t) {
    for (size_t j = 0; j < half; ++j) {
      const size_t axis = one_axis ? 0 : spec.axes[j];
      const float angle = static_cast<float>(positions[axis * n + t]) * spec.inv_freq[j];
      double s = 0;
      double c = 0;
      SinCosF64(static_cast<double>(angle), &s, &c);
      cos[t * half + j] = static_cast<float>(c) * spec.attention_factor;
      sin[t * half + j] = static_cast<float>(s) * spec.attention_factor;
    }
  }
  return {cos, sin, spec.rotary_dim()};
}

void ApplyRope(StepContext& step, const RopeTable& table, const RopeHeads& heads) {
  step.backend.Rope({.x = heads.x,
                     .num_tokens = step.num_tokens(),
                     .num_heads = heads.num_heads,
                     .head_dim = heads.head_dim,
                     .rotary_dim = table.rotary_dim,
                     .cos = table.cos,
                     .sin = table.sin,
                     .offset = heads.offset,
                     .interleaved = heads.interleaved});
}

void ApplyRope(StepContext& step, int rope, const RopeHeads& heads) {
  if (rope >= 0) ApplyRope(step, step.ropes[static_cast<size_t>(rope)], heads);
}

}  // namespace tq
