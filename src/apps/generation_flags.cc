#include "apps/generation_flags.h"

#include <charconv>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "apps/flags.h"

namespace tq {
namespace {

using LogitBias = std::vector<std::pair<int32_t, float>>;

// "ID=VALUE,ID=VALUE"
Result<LogitBias> ParseLogitBias(std::string_view text) {
  LogitBias biases;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = std::min(entry.find('='), entry.size());
    int32_t id = 0;
    float value = 0;
    const char* entry_end = entry.data() + entry.size();
    const auto [id_stop, id_error] = std::from_chars(entry.data(), entry.data() + equals, id);
    const bool has_id = id_error == std::errc() && id_stop == entry.data() + equals && id >= 0;
    const bool has_value = equals < entry.size();
    const char* value_begin = entry.data() + std::min(equals + 1, entry.size());
    const auto [stop, error] = std::from_chars(value_begin, entry_end, value);
    if (!has_id || !has_value || error != std::errc() || stop != entry_end) {
      return InvalidArgument(
          fmt::format("expected ID=VALUE,..., found \"{}\"", entry.substr(0, 40)));
    }
    biases.emplace_back(id, value);
  }
  return biases;
}

void AddSamplingFlags(CLI::App& app, GenerationFlags& flags) {
  constexpr const char* kGroup =
      "Sampling (default: the checkpoint's generation_config.json, else greedy)";
  app.add_option("--temp,--temperature", flags.temp, "Temperature; 0: greedy")
      ->check(InRange(0.0, 100.0))
      ->group(kGroup);
  app.add_option("--top-p", flags.top_p, "Smallest set of tokens with this share; 0 or 1: off")
      ->check(InRange(0.0, 1.0))
      ->group(kGroup);
  app.add_option("--top-k", flags.top_k, "The k most likely tokens; 0: off")
      ->check(InRange(0, 1 << 30))
      ->group(kGroup);
  app.add_option("--min-p", flags.min_p, "Tokens of at least this share of the best; 0: off")
      ->check(InRange(0.0, 0.999999))
      ->group(kGroup);
  app.add_option("--rep-penalty,--repetition-penalty", flags.rep_penalty,
                 "Repetition penalty; 0 or 1: off")
      ->check(InRange(0.0, 100.0))
      ->group(kGroup);
  app.add_option("--rep-ctx", flags.rep_ctx, "Tokens that the penalty looks back")
      ->check(InRange(1, 1 << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--logit-bias", flags.logit_bias, "ID=VALUE,...: added to the logits")
      ->check([](const std::string& text) { return ParseLogitBias(text).status().message(); })
      ->group(kGroup);
  app.add_option("--seed", flags.seed, "Same seed, same answer; default: random")->group(kGroup);
}

}  // namespace

void AddGenerationFlags(CLI::App& app, GenerationFlags& flags) {
  app.add_option("--max-tokens", flags.max_tokens,
                 "Length of an answer; -1: until the context is full")
      ->check(InRange(int64_t{-1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--min-tokens", flags.min_tokens, "No end of the answer before this many tokens")
      ->check(InRange(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--stop", flags.stop, "Text that ends an answer, not part of it (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--system", flags.system, "System message");
  app.add_flag("--no-think", flags.no_think, "Tell the chat template: enable_thinking = false");
  app.add_option("--prefill-chunk", flags.prefill_chunk, "Prompt tokens per step (same answer)")
      ->check(InRange(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--max-context", flags.max_context,
                 "Tokens of prompt and answer; 0: what the model was made for")
      ->check(InRange(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  AddSamplingFlags(app, flags);
}

SamplingParams MakeSampling(const GenerationFlags& flags, const TextAssets& text) {
  SamplingParams sampling = text.sampling;
  sampling.temperature = flags.temp.value_or(sampling.temperature);
  sampling.top_p = flags.top_p.value_or(sampling.top_p);
  sampling.top_k = flags.top_k.value_or(sampling.top_k);
  sampling.min_p = flags.min_p.value_or(sampling.min_p);
  sampling.repetition_penalty = flags.rep_penalty.value_or(sampling.repetition_penalty);
  if (flags.top_p == 0.0f) sampling.top_p = 1.0f;
  if (flags.rep_penalty == 0.0f) sampling.repetition_penalty = 1.0f;
  sampling.repetition_context = flags.rep_ctx;
  if (flags.seed) {
    sampling.seed = *flags.seed;
  } else if (sampling.temperature > 0) {
    std::random_device device;
    sampling.seed = (uint64_t{device()} << 32) | device();
  }
  const Result<LogitBias> bias = ParseLogitBias(flags.logit_bias);  // checked when it was parsed
  if (bias.ok()) sampling.logit_bias = bias.value();
  return sampling;
}

GenerateRequest MakeRequest(const GenerationFlags& flags, const TextAssets& text,
                            std::vector<int32_t> prompt) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling = MakeSampling(flags, text);
  request.max_tokens = flags.max_tokens;
  request.min_tokens = flags.min_tokens;
  request.end_ids = text.end_ids;
  if (text.tokenizer != nullptr) {
    for (const std::string& stop : flags.stop) {
      const int32_t id = text.tokenizer->TokenId(stop);
      if (id >= 0 && text.tokenizer->IsSpecial(id)) request.stop_ids.push_back(id);
    }
  }
  return request;
}

EngineOptions MakeEngineOptions(const GenerationFlags& flags) {
  return {
      .max_context = flags.max_context, .max_sequences = 1, .prefill_chunk = flags.prefill_chunk};
}

}  // namespace tq
