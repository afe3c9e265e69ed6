#include "server/fields.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/request_text.h"
#include "base/json.h"
#include "sampling/random.h"

namespace tq::server {
namespace {

constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 4096;
constexpr double kMaxFloat = std::numeric_limits<float>::max();

std::string RangeText(double low, double high) {
  if (high >= kMaxFloat) return fmt::format("a number >= {:g}", low);
  return fmt::format("a number from {:g} to {:g}", low, high);
}

Status ReadStop(const RequestNode& node, std::vector<std::string>& stops) {
  TQ_ASSIGN_OR_RETURN(std::string text, node.Text());
  if (text.size() > kMaxStopBytes) {
    return InvalidArgument(fmt::format("{}: expected a text of at most {} bytes, found {}",
                                       node.path(), kMaxStopBytes, text.size()));
  }
  if (!text.empty()) stops.push_back(std::move(text));
  return Status::Ok();
}

// {"ID": BIAS}
Status ReadLogitBias(const RequestNode& node, SamplingParams& sampling) {
  if (node.IsNull()) return Status::Ok();
  TQ_RETURN_IF_ERROR(node.CheckObject());
  for (const auto& [key, value] : node.value().items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || !value.is_number()) {
      return node.Expected("an object of token ids with numbers");
    }
    sampling.logit_bias.emplace_back(id, value.get<float>());
  }
  return Status::Ok();
}

Status ReadSeed(const RequestNode& node, SamplingParams& sampling) {
  if (node.IsNull()) {
    if (sampling.temperature > 0) sampling.seed = FreshSeed();
    return Status::Ok();
  }
  if (!node.value().is_number_integer()) return node.Expected("a whole number");
  sampling.seed = node.value().is_number_unsigned()
                      ? node.value().get<uint64_t>()
                      : static_cast<uint64_t>(node.value().get<int64_t>());
  return Status::Ok();
}

// The fields that other servers have for it.
Status ReadDry(const RequestNode& body, const TextAssets& text, SamplingParams& sampling) {
  TQ_ASSIGN_OR_RETURN(const auto multiplier, OptionalNumber(body["dry_multiplier"], 0, 100));
  TQ_ASSIGN_OR_RETURN(const auto base, OptionalNumber(body["dry_base"], 1, 100));
  TQ_ASSIGN_OR_RETURN(const auto allowed, OptionalInt(body["dry_allowed_length"], 1, 1 << 30));
  TQ_ASSIGN_OR_RETURN(const auto context, OptionalInt(body["dry_penalty_last_n"], -1, 1 << 30));
  TQ_ASSIGN_OR_RETURN(std::vector<std::string> breakers, ReadStops(body["dry_sequence_breakers"]));
  if (multiplier) sampling.dry_multiplier = static_cast<float>(*multiplier);
  if (base) sampling.dry_base = static_cast<float>(*base);
  if (allowed) sampling.dry_allowed_length = static_cast<int>(*allowed);
  if (context) sampling.dry_context = static_cast<int>(*context);
  if (sampling.dry_multiplier <= 0) return Status::Ok();
  if (breakers.empty()) breakers = DefaultDryBreakers();
  sampling.dry_breakers = text.dry_breakers->Ids(*text.tokenizer, breakers);
  return Status::Ok();
}

Status ReadBadWords(const RequestNode& node, const TextAssets& text, SamplingParams& sampling) {
  TQ_ASSIGN_OR_RETURN(const std::vector<std::string> words, ReadStops(node));
  if (!words.empty()) sampling.bad_words = BadWordIds(*text.tokenizer, words);
  return Status::Ok();
}

}  // namespace

Result<OrderedJson> ParseBody(std::string_view body) {
  constexpr int kMaxDepth = 128;
  Result<OrderedJson> parsed = ParseOrderedJson(body, "body", kMaxDepth);
  if (!parsed.ok()) return InvalidArgument(parsed.status().message());
  if (!parsed->is_object()) {
    return InvalidArgument(
        fmt::format("body: expected a JSON object, found {}", parsed->type_name()));
  }
  return parsed;
}

Result<std::optional<double>> OptionalNumber(const RequestNode& node, double low, double high) {
  if (node.IsNull()) return std::optional<double>();
  const bool is_number = node.value().is_number();
  const double value = is_number ? node.value().get<double>() : 0;
  if (!is_number || !(value >= low && value <= high)) return node.Expected(RangeText(low, high));
  return std::optional<double>(value);
}

Result<std::optional<int64_t>> OptionalInt(const RequestNode& node, int64_t low, int64_t high) {
  if (node.IsNull()) return std::optional<int64_t>();
  const std::string range = high == std::numeric_limits<int64_t>::max()
                                ? fmt::format("a whole number >= {}", low)
                                : fmt::format("a whole number from {} to {}", low, high);
  const double number = node.value().is_number() ? node.value().get<double>() : NAN;
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!(std::floor(number) == number && std::fabs(number) <= kExact)) return node.Expected(range);
  const auto value = static_cast<int64_t>(number);
  if (value < low || value > high) return node.Expected(range);
  return std::optional<int64_t>(value);
}

Result<std::optional<bool>> OptionalBool(const RequestNode& node) {
  if (node.IsNull()) return std::optional<bool>();
  if (!node.value().is_boolean()) return node.Expected("true or false");
  return std::optional<bool>(node.value().get<bool>());
}

Result<std::vector<std::string>> ReadStops(const RequestNode& node) {
  std::vector<std::string> stops;
  if (node.IsText()) {
    TQ_RETURN_IF_ERROR(ReadStop(node, stops));
    return stops;
  }
  if (!node.IsNull() && !node.IsList()) return node.Expected("a text or a list of texts");
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> list, node.List());
  if (list.size() > kMaxStops) {
    return InvalidArgument(fmt::format("{}: expected at most {} texts, found {}", node.path(),
                                       kMaxStops, list.size()));
  }
  for (const RequestNode& stop : list) TQ_RETURN_IF_ERROR(ReadStop(stop, stops));
  return stops;
}

Result<SamplingParams> ReadSampling(const RequestNode& body, const TextAssets& text) {
  SamplingParams sampling = text.sampling;
  TQ_ASSIGN_OR_RETURN(const auto temperature, OptionalNumber(body["temperature"], 0, kMaxFloat));
  TQ_ASSIGN_OR_RETURN(const auto top_p, OptionalNumber(body["top_p"], 0, 1));
  TQ_ASSIGN_OR_RETURN(const auto min_p, OptionalNumber(body["min_p"], 0, 0.999999));
  TQ_ASSIGN_OR_RETURN(const auto top_k, OptionalInt(body["top_k"], -1, 1 << 30));
  TQ_ASSIGN_OR_RETURN(const auto penalty, OptionalNumber(body["repetition_penalty"], 0, kMaxFloat));
  TQ_ASSIGN_OR_RETURN(const auto typical_p, OptionalNumber(body["typical_p"], 0, 1));
  TQ_ASSIGN_OR_RETURN(const auto presence, OptionalNumber(body["presence_penalty"], -100, 100));
  TQ_ASSIGN_OR_RETURN(const auto frequency, OptionalNumber(body["frequency_penalty"], -100, 100));
  TQ_ASSIGN_OR_RETURN(const auto xtc, OptionalNumber(body["xtc_probability"], 0, 1));
  TQ_ASSIGN_OR_RETURN(const auto xtc_threshold, OptionalNumber(body["xtc_threshold"], 0, 1));
  if (temperature) sampling.temperature = static_cast<float>(*temperature);
  // Off, in one of its two spellings.
  if (top_p) sampling.top_p = *top_p > 0 ? static_cast<float>(*top_p) : 1.0f;
  if (top_k) sampling.top_k = *top_k > 0 ? static_cast<int>(*top_k) : 0;
  if (min_p) sampling.min_p = static_cast<float>(*min_p);
  if (penalty) sampling.repetition_penalty = *penalty > 0 ? static_cast<float>(*penalty) : 1.0f;
  if (typical_p) sampling.typical_p = *typical_p > 0 ? static_cast<float>(*typical_p) : 1.0f;
  if (presence) sampling.presence_penalty = static_cast<float>(*presence);
  if (frequency) sampling.frequency_penalty = static_cast<float>(*frequency);
  if (xtc) sampling.xtc_probability = static_cast<float>(*xtc);
  if (xtc_threshold) sampling.xtc_threshold = static_cast<float>(*xtc_threshold);
  TQ_RETURN_IF_ERROR(ReadDry(body, text, sampling));
  TQ_RETURN_IF_ERROR(ReadBadWords(body["bad_words"], text, sampling));
  TQ_RETURN_IF_ERROR(ReadLogitBias(body["logit_bias"], sampling));
  TQ_RETURN_IF_ERROR(ReadSeed(body["seed"], sampling));
  return sampling;
}

Status ReadTemplateVariables(const RequestNode& body, const OrderedJson& defaults,
                             ChatPromptOptions& options) {
  const RequestNode variables = body["chat_template_kwargs"];
  if (!variables.IsNull()) TQ_RETURN_IF_ERROR(variables.CheckObject());
  options.variables = defaults;
  const RequestNode served(defaults, "");
  if (options.enable_thinking || !served["enable_thinking"].value().is_boolean()) {
    options.variables.erase("enable_thinking");
  } else {
    options.enable_thinking = served["enable_thinking"].value().get<bool>();
  }
  if (variables.IsNull()) return Status::Ok();
  options.variables.update(variables.value());
  TQ_ASSIGN_OR_RETURN(const auto thinks, OptionalBool(variables["enable_thinking"]));
  if (thinks) options.enable_thinking = thinks;
  return Status::Ok();
}

}  // namespace tq::server
