#include "apps/generation_flags.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "apps/flags.h"
#include "sampling/random.h"

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
  app.add_option("--typical-p,--typical", flags.typical_p,
                 "Locally typical tokens with this share; 0 or 1: off")
      ->check(InRange(0.0, 1.0))
      ->group(kGroup);
  app.add_option("--xtc-probability", flags.sampling.xtc_probability,
                 "How often the top choices are left out; 0: off")
      ->check(InRange(0.0, 1.0))
      ->group(kGroup);
  app.add_option("--xtc-threshold", flags.sampling.xtc_threshold,
                 "Share that makes a top choice; above 0.5: off")
      ->check(InRange(0.0, 1.0))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--samplers", flags.samplers,
                 "Order, those left out are off: "
                 "top_k;typical_p;top_p;min_p;xtc;temperature (the default)")
      ->check([](const std::string& text) { return ParseSamplerOrder(text).status().message(); })
      ->group(kGroup);
  app.add_option("--logit-bias", flags.logit_bias, "ID=VALUE,...: added to the logits")
      ->check([](const std::string& text) { return ParseLogitBias(text).status().message(); })
      ->group(kGroup);
  app.add_option("--seed", flags.seed, "Same seed, same answer; default: random")->group(kGroup);
}

void AddPenaltyFlags(CLI::App& app, GenerationFlags& flags) {
  constexpr const char* kGroup = "Penalties";
  SamplingParams& sampling = flags.sampling;
  app.add_option("--rep-penalty,--repetition-penalty,--repeat-penalty", flags.rep_penalty,
                 "Repetition penalty, of prompt and answer; 0 or 1: off")
      ->check(InRange(0.0, 100.0))
      ->group(kGroup);
  app.add_option("--rep-ctx,--repeat-last-n", sampling.repetition_context,
                 "Tokens that it looks back")
      ->check(InRange(1, 1 << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--presence-penalty", sampling.presence_penalty,
                 "Taken from what the answer has said already; 0: off")
      ->check(InRange(-100.0, 100.0))
      ->group(kGroup);
  app.add_option("--frequency-penalty", sampling.frequency_penalty, "The same for every time")
      ->check(InRange(-100.0, 100.0))
      ->group(kGroup);
  app.add_option("--penalty-ctx", sampling.penalty_context,
                 "Tokens that these two look back; -1: all of the answer")
      ->check(InRange(-1, 1 << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--penalize-prompt", sampling.penalize_prompt, "They count the prompt's tokens too")
      ->group(kGroup);
  app.add_option("--dry-multiplier", sampling.dry_multiplier,
                 "DRY, against repeats of whole passages; 0: off")
      ->check(InRange(0.0, 100.0))
      ->group(kGroup);
  app.add_option("--dry-base", sampling.dry_base, "Its growth for every further token")
      ->check(InRange(1.0, 100.0))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--dry-allowed-length", sampling.dry_allowed_length,
                 "Repeats up to this length cost nothing")
      ->check(InRange(1, 1 << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--dry-penalty-last-n", sampling.dry_context,
                 "Tokens that DRY looks back; -1: all")
      ->check(InRange(-1, 1 << 30))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--dry-sequence-breaker", flags.dry_breakers,
                 "Text that no repeat reaches over (repeatable); default: newline : \" *")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_option("--bad-words", flags.bad_words, "Text that may not come (repeatable)")
      ->allow_extra_args(false)
      ->group(kGroup);
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
  app.add_flag("--ignore-eos", flags.ignore_end, "The model cannot end the answer");
  app.add_option("--loop-limit", flags.loop_limit,
                 "End an answer that says the same so many times in a row; 0: off")
      ->check(InRange(int64_t{0}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--logprobs", flags.logprobs,
                 "With --json: log probabilities of the answer and of this many alternatives")
      ->check(InRange(0, TokenLogprobs::kMaxTop));
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
  AddPenaltyFlags(app, flags);
}

void AddAnswersFlag(CLI::App& app, GenerationFlags& flags) {
  app.add_option("--n", flags.num_answers, "Answers to the prompt, each with its own seed")
      ->check(InRange(int64_t{1}, int64_t{128}))
      ->capture_default_str();
}

Status CheckGenerationFlags(const GenerationFlags& flags, bool json) {
  if (flags.logprobs >= 0 && !json) {
    return InvalidArgument("--logprobs: expected --json with it, found none");
  }
  for (const std::string& stop : flags.stop) TQ_RETURN_IF_ERROR(CheckUtf8(stop, "--stop"));
  for (const std::string& word : flags.bad_words) {
    TQ_RETURN_IF_ERROR(CheckUtf8(word, "--bad-words"));
  }
  for (const std::string& text : flags.dry_breakers) {
    TQ_RETURN_IF_ERROR(CheckUtf8(text, "--dry-sequence-breaker"));
  }
  return CheckUtf8(flags.system, "--system");
}

SamplingParams MakeSampling(const GenerationFlags& flags, const TextAssets& text) {
  SamplingParams sampling = flags.sampling;
  const SamplingParams& own = text.sampling;
  sampling.temperature = flags.temp.value_or(own.temperature);
  sampling.top_p = flags.top_p.value_or(own.top_p);
  sampling.top_k = flags.top_k.value_or(own.top_k);
  sampling.min_p = flags.min_p.value_or(own.min_p);
  sampling.typical_p = flags.typical_p.value_or(own.typical_p);
  sampling.repetition_penalty = flags.rep_penalty.value_or(own.repetition_penalty);
  if (flags.top_p == 0.0f) sampling.top_p = 1.0f;
  if (flags.typical_p == 0.0f) sampling.typical_p = 1.0f;
  if (flags.rep_penalty == 0.0f) sampling.repetition_penalty = 1.0f;
  if (flags.seed) {
    sampling.seed = *flags.seed;
  } else if (sampling.temperature > 0) {
    sampling.seed = FreshSeed();
  }
  // Both were checked when they were parsed.
  const Result<LogitBias> bias = ParseLogitBias(flags.logit_bias);
  if (bias.ok()) sampling.logit_bias = bias.value();
  const Result<std::vector<SamplerStep>> order = ParseSamplerOrder(flags.samplers);
  if (order.ok() && !flags.samplers.empty()) sampling.order = order.value();
  return sampling;
}

Result<GenerateRequest> MakeRequest(const GenerationFlags& flags, const TextAssets& text,
                                    std::vector<int32_t> prompt) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling = MakeSampling(flags, text);
  request.max_tokens = flags.max_tokens;
  request.min_tokens = flags.min_tokens;
  request.end_ids = text.end_ids;
  request.ignore_end = flags.ignore_end;
  request.loop_limit = flags.loop_limit;
  request.num_logprobs = flags.logprobs;
  if (!flags.bad_words.empty()) {
    TQ_ASSIGN_OR_RETURN(const Tokenizer* tokenizer, NeedTokenizer(text));
    request.sampling.bad_words = BadWordIds(*tokenizer, flags.bad_words);
  }
  if (text.tokenizer == nullptr) return request;
  if (request.sampling.dry_multiplier > 0) {
    request.sampling.dry_breakers = DryBreakerIds(*text.tokenizer, flags.dry_breakers);
  }
  for (const std::string& stop : flags.stop) {
    const int32_t id = text.tokenizer->TokenId(stop);
    if (id >= 0 && text.tokenizer->IsSpecial(id)) request.stop_ids.push_back(id);
  }
  return request;
}

EngineOptions MakeEngineOptions(const GenerationFlags& flags) {
  EngineOptions options;
  options.max_context = flags.max_context;
  options.max_sequences = static_cast<int>(flags.num_answers);
  options.prefill_chunk = flags.prefill_chunk;
  // Without a limit the answers share the room of the model's whole context.
  if (flags.num_answers > 1) {
    options.kv_tokens = std::min(flags.max_context * flags.num_answers, int64_t{1} << 30);
  }
  return options;
}

}  // namespace tq
