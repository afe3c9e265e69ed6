#include "sampling/params.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace tq {
namespace {

// Of a request; so that checking one stays cheap.
constexpr size_t kMaxSequences = 1 << 16;
constexpr size_t kMaxSequenceIds = 1 << 10;

Status BadField(std::string_view field, std::string_view expected, double found) {
  return InvalidArgument(fmt::format("{}: expected {}, found {}", field, expected, found));
}

struct Range {
  std::string_view field;
  float value;
  float low;
  float high;
  bool open_low;  // low itself is outside
  std::string_view expected;
};

Status CheckRange(const Range& range) {
  const bool above = range.open_low ? range.value > range.low : range.value >= range.low;
  if (above && range.value <= range.high && std::isfinite(range.value)) return Status::Ok();
  return BadField(range.field, range.expected, range.value);
}

Status CheckCount(std::string_view field, int least, int found, std::string_view expected) {
  return found >= least ? Status::Ok() : BadField(field, expected, found);
}

Status CheckSequences(std::string_view field, const std::vector<std::vector<int32_t>>& sequences,
                      int64_t vocab_size) {
  if (sequences.size() > kMaxSequences) {
    return BadField(field, fmt::format("at most {} sequences", kMaxSequences),
                    static_cast<double>(sequences.size()));
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<int32_t>& ids = sequences[i];
    if (ids.empty() || ids.size() > kMaxSequenceIds) {
      return BadField(fmt::format("{}[{}]", field, i), fmt::format("1 to {} ids", kMaxSequenceIds),
                      static_cast<double>(ids.size()));
    }
    for (const int32_t id : ids) {
      if (id >= 0 && id < vocab_size) continue;
      return BadField(fmt::format("{}[{}]", field, i), fmt::format("ids in [0, {})", vocab_size),
                      id);
    }
  }
  return Status::Ok();
}

Status CheckOrder(const std::vector<SamplerStep>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (std::find(order.begin(), order.begin() + static_cast<ptrdiff_t>(i), order[i]) ==
        order.begin() + static_cast<ptrdiff_t>(i)) {
      continue;
    }
    return InvalidArgument(fmt::format("order: expected every sampler once, found {} again",
                                       SamplerStepName(order[i])));
  }
  return Status::Ok();
}

}  // namespace

std::string_view SamplerStepName(SamplerStep step) {
  switch (step) {
    case SamplerStep::kTopK:
      return "top_k";
    case SamplerStep::kTypicalP:
      return "typical_p";
    case SamplerStep::kTopP:
      return "top_p";
    case SamplerStep::kMinP:
      return "min_p";
    case SamplerStep::kXtc:
      return "xtc";
    case SamplerStep::kTemperature:
      return "temperature";
  }
  return "unknown";
}

Result<std::vector<SamplerStep>> ParseSamplerOrder(std::string_view text) {
  std::vector<SamplerStep> order;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(";,"), text.size());
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto* found =
        std::find_if(kDefaultOrder.begin(), kDefaultOrder.end(), [&](SamplerStep step) {
          return SamplerStepName(step) == name ||
                 (step == SamplerStep::kTypicalP && name == "typ_p");
        });
    if (found == kDefaultOrder.end()) {
      return InvalidArgument(
          fmt::format("expected top_k, typical_p, top_p, min_p, xtc or temperature, found \"{}\"",
                      name.substr(0, 40)));
    }
    order.push_back(*found);
  }
  TQ_RETURN_IF_ERROR(CheckOrder(order));
  return order;
}

Status SamplingParams::Validate(int64_t vocab_size) const {
  constexpr float kMost = 3e38f;
  for (const Range& range : {
           Range{"temperature", temperature, 0, kMost, false, "a number >= 0 (0 is greedy)"},
           Range{"top_p", top_p, 0, 1, true, "(0, 1] (1 is off)"},
           Range{"min_p", min_p, 0, 1, false, "[0, 1] (0 is off)"},
           Range{"typical_p", typical_p, 0, 1, true, "(0, 1] (1 is off)"},
           Range{"xtc_probability", xtc_probability, 0, 1, false, "[0, 1] (0 is off)"},
           Range{"xtc_threshold", xtc_threshold, 0, 1, false, "[0, 1]"},
           Range{"repetition_penalty", repetition_penalty, 0, kMost, true,
                 "a number > 0 (1 is off)"},
           Range{"presence_penalty", presence_penalty, -kMost, kMost, false, "a finite number"},
           Range{"frequency_penalty", frequency_penalty, -kMost, kMost, false, "a finite number"},
           Range{"dry_multiplier", dry_multiplier, 0, kMost, false, "a number >= 0 (0 is off)"},
           Range{"dry_base", dry_base, 1, kMost, false, "a number >= 1"},
       }) {
    TQ_RETURN_IF_ERROR(CheckRange(range));
  }
  TQ_RETURN_IF_ERROR(CheckCount("top_k", 0, top_k, "a number >= 0 (0 is off)"));
  TQ_RETURN_IF_ERROR(CheckCount("repetition_context", 0, repetition_context, "a number >= 0"));
  constexpr std::string_view kContext = "a number >= 0, or -1 for all tokens";
  TQ_RETURN_IF_ERROR(CheckCount("penalty_context", -1, penalty_context, kContext));
  TQ_RETURN_IF_ERROR(CheckCount("dry_context", -1, dry_context, kContext));
  TQ_RETURN_IF_ERROR(CheckCount("dry_allowed_length", 1, dry_allowed_length, "a number >= 1"));
  for (const auto& [id, bias] : logit_bias) {
    if (id < 0 || id >= vocab_size) {
      return BadField("logit_bias", fmt::format("ids in [0, {})", vocab_size), id);
    }
    if (!std::isfinite(bias)) {
      return BadField(fmt::format("logit_bias of id {}", id), "a finite number", bias);
    }
  }
  TQ_RETURN_IF_ERROR(CheckSequences("bad_words", bad_words, vocab_size));
  TQ_RETURN_IF_ERROR(CheckSequences("dry_breakers", dry_breakers, vocab_size));
  return CheckOrder(order);
}

}  // namespace tq
