// The public API over ModelSession.
#include <algorithm>
#include <string>

#include "api/answer.h"
#include "api/model_session.h"
#include "api/request_text.h"
#include "sampling/random.h"
#include "turboquant/turboquant.h"

namespace turboquant {
namespace {

template <typename T>
Result<T> Failed(const tq::Status& status) {
  return Result<T>::Error(status.message());
}

tq::Result<tq::SamplingParams> MakeSampling(const tq::TextAssets& text,
                                            const GenerateOptions& options) {
  tq::SamplingParams sampling = text.sampling;
  sampling.temperature = options.temperature.value_or(sampling.temperature);
  sampling.top_p = options.top_p.value_or(sampling.top_p);
  sampling.top_k = options.top_k.value_or(sampling.top_k);
  sampling.min_p = options.min_p.value_or(sampling.min_p);
  sampling.typical_p = options.typical_p.value_or(sampling.typical_p);
  sampling.xtc_probability = options.xtc_probability;
  sampling.xtc_threshold = options.xtc_threshold;
  sampling.repetition_penalty = options.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.repetition_context = options.repetition_context;
  sampling.presence_penalty = options.presence_penalty;
  sampling.frequency_penalty = options.frequency_penalty;
  sampling.dry_multiplier = options.dry_multiplier;
  sampling.dry_base = options.dry_base;
  sampling.dry_allowed_length = options.dry_allowed_length;
  sampling.dry_context = options.dry_context;
  sampling.logit_bias = options.logit_bias;
  sampling.seed = options.seed ? *options.seed : tq::FreshSeed();
  if (!options.samplers.empty()) {
    auto order = tq::ParseSamplerOrder(options.samplers);
    if (!order.ok()) return order.status().WithContext("samplers");
    sampling.order = std::move(order).value();
  }
  if (!options.bad_words.empty()) {
    const auto tokenizer = tq::NeedTokenizer(text);
    if (!tokenizer.ok()) return tokenizer.status();
    sampling.bad_words = tq::BadWordIds(*tokenizer.value(), options.bad_words);
  }
  if (options.dry_multiplier > 0 && text.tokenizer != nullptr) {
    sampling.dry_breakers = tq::DryBreakerIds(*text.tokenizer, options.dry_breakers);
  }
  return sampling;
}

tq::Result<tq::GenerateRequest> MakeRequest(const tq::TextAssets& text,
                                            const GenerateOptions& options,
                                            std::vector<int32_t> prompt) {
  tq::GenerateRequest request;
  auto sampling = MakeSampling(text, options);
  if (!sampling.ok()) return sampling.status();
  request.sampling = std::move(sampling).value();
  request.prompt = std::move(prompt);
  request.max_tokens = options.max_tokens;
  request.min_tokens = options.min_tokens;
  request.end_ids = text.end_ids;
  request.stop_ids = options.stop_ids;
  request.ignore_end = options.ignore_end;
  request.loop_limit = options.loop_limit;
  request.num_logprobs = options.logprobs.value_or(-1);
  return request;
}

FinishReason ToPublic(tq::FinishReason reason) {
  switch (reason) {
    case tq::FinishReason::kStop:
      return FinishReason::kStop;
    case tq::FinishReason::kLength:
      return FinishReason::kLength;
    case tq::FinishReason::kLoop:
      return FinishReason::kLoop;
    default:
      return FinishReason::kCancelled;
  }
}

std::vector<TokenLogprobs> ToPublic(const std::vector<tq::TokenLogprobs>& all) {
  std::vector<TokenLogprobs> out;
  for (const tq::TokenLogprobs& token : all) {
    TokenLogprobs& copy = out.emplace_back();
    copy.logprob = token.logprob;
    for (int32_t i = 0; i < token.num_top; ++i) {
      const tq::TopLogprob& top = token.top[static_cast<size_t>(i)];
      copy.top.push_back({top.id, top.logprob});
    }
  }
  return out;
}

// Reads an answer to its end.
Result<Generation> Read(tq::Answer& answer, const OnText& on_text) {
  Generation generation;
  while (const std::optional<std::string> piece = answer.Next()) {
    generation.text += *piece;
    if (on_text && !piece->empty() && !on_text(*piece)) answer.Cancel();
  }
  if (answer.finish_reason() == tq::FinishReason::kError) {
    return Failed<Generation>(answer.status());
  }
  const tq::GenerateStats stats = answer.stats();
  generation.ids = answer.ids();
  generation.finish_reason = ToPublic(answer.finish_reason());
  generation.prompt_tokens = stats.prompt_tokens;
  generation.cached_tokens = stats.cached_tokens;
  generation.prefill_seconds = stats.prefill_seconds;
  generation.decode_seconds = stats.decode_seconds;
  generation.seed = answer.seed();
  generation.logprobs = ToPublic(answer.logprobs());
  return Result<Generation>::Ok(std::move(generation));
}

tq::Result<std::vector<int32_t>> Encode(const tq::TextAssets& text, const std::string& prompt,
                                        const GenerateOptions& options) {
  return tq::EncodePrompt(text, prompt,
                          {.use_chat_template = options.chat_template,
                           .system = options.system,
                           .enable_thinking = options.thinking});
}

}  // namespace

struct Model::Impl {
  std::unique_ptr<tq::ModelSession> session;
  const tq::TextAssets* text = nullptr;
  tq::Engine* engine = nullptr;
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::Load(const std::string& path, const LoadOptions& options) {
  using Loaded = std::unique_ptr<Model>;
  tq::SessionOptions session_options{
      .path = path,
      .backend = options.backend,
      .backend_options = {.num_threads = options.threads,
                          .activations = options.f32_activations ? tq::ActivationMode::kF32
                                                                 : tq::ActivationMode::kInt8,
                          .isa = options.isa},
      .memory_bytes = options.memory_bytes};
  if (!options.kv_type.empty()) {
    tq::KvSettings kv;
    kv.min_tokens = std::max<int64_t>(options.kv_min_tokens, 0);
    kv.group_size = options.kv_group_size;
    const int group = options.kv_group_size;
    if (group != 16 && group != 32 && group != 64 && group != 128) {
      return Result<Loaded>::Error("kv_group_size: expected 16, 32, 64 or 128, found " +
                                   std::to_string(group));
    }
    const tq::Result<tq::KvSettings> parsed = tq::ParseKvSettings(options.kv_type, kv);
    if (!parsed.ok()) return Failed<Loaded>(parsed.status().WithContext("kv_type"));
    session_options.kv = parsed.value();
  }
  auto session = tq::ModelSession::Open(session_options, options.progress);
  if (!session.ok()) return Failed<Loaded>(session.status());
  auto impl = std::make_unique<Impl>();
  impl->session = std::move(session).value();
  const auto text = impl->session->LoadText();
  if (!text.ok()) return Failed<Loaded>(text.status());
  impl->text = text.value();
  tq::EngineOptions engine_options{.max_context = options.max_context,
                                   .kv_tokens = options.max_context * options.max_sequences,
                                   .max_sequences = options.max_sequences};
  engine_options.disk_cache.folder = options.disk_cache;
  if (options.disk_cache_bytes > 0) {
    engine_options.disk_cache.budget_bytes = options.disk_cache_bytes;
  }
  const auto engine = impl->session->StartEngine(engine_options);
  if (!engine.ok()) return Failed<Loaded>(engine.status());
  impl->engine = engine.value();
  return Result<Loaded>::Ok(Loaded(new Model(std::move(impl))));
}

Result<Generation> Model::Generate(const std::string& prompt, const GenerateOptions& options,
                                   const OnText& on_text) {
  auto ids = Encode(*impl_->text, prompt, options);
  if (!ids.ok()) return Failed<Generation>(ids.status());
  return GenerateFromIds(ids.value(), options, on_text);
}

Result<std::vector<Generation>> Model::GenerateMany(const std::string& prompt, int count,
                                                    const GenerateOptions& options) {
  using Many = std::vector<Generation>;
  auto ids = Encode(*impl_->text, prompt, options);
  if (!ids.ok()) return Failed<Many>(ids.status());
  const auto request = MakeRequest(*impl_->text, options, std::move(ids).value());
  if (!request.ok()) return Failed<Many>(request.status());
  auto answers = tq::StartAnswers(*impl_->engine, impl_->text->tokenizer.get(), request.value(),
                                  options.stop, count);
  if (!answers.ok()) return Failed<Many>(answers.status());
  Many all;
  for (const auto& answer : answers.value()) {
    Result<Generation> one = Read(*answer, {});
    if (!one) return Result<Many>::Error(one.error());
    all.push_back(std::move(*one));
  }
  return Result<Many>::Ok(std::move(all));
}

Result<Generation> Model::GenerateFromIds(const std::vector<int32_t>& prompt,
                                          const GenerateOptions& options, const OnText& on_text) {
  auto request = MakeRequest(*impl_->text, options, prompt);
  if (!request.ok()) return Failed<Generation>(request.status());
  auto started = tq::Answer::Start(*impl_->engine, impl_->text->tokenizer.get(),
                                   std::move(request).value(), options.stop);
  if (!started.ok()) return Failed<Generation>(started.status());
  return Read(*started.value(), on_text);
}

Result<std::vector<int32_t>> Model::Tokenize(std::string_view text, bool add_special) const {
  const auto tokenizer = tq::NeedTokenizer(*impl_->text);
  if (!tokenizer.ok()) return Failed<std::vector<int32_t>>(tokenizer.status());
  return Result<std::vector<int32_t>>::Ok(
      tokenizer.value()->Encode(text, {.add_special_tokens = add_special, .parse_special = true}));
}

Result<std::string> Model::Detokenize(const std::vector<int32_t>& ids, bool skip_special) const {
  const auto tokenizer = tq::NeedTokenizer(*impl_->text);
  if (!tokenizer.ok()) return Failed<std::string>(tokenizer.status());
  return Result<std::string>::Ok(tokenizer.value()->Decode(ids, skip_special));
}

int64_t Model::vocab_size() const { return impl_->session->model().spec().vocab_size; }
int64_t Model::max_context() const { return impl_->engine->options().max_context; }

std::string_view Version() { return TQ_VERSION; }

}  // namespace turboquant
