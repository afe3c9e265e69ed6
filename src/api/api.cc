// The public API over ModelSession.
#include "api/answer.h"
#include "api/model_session.h"
#include "turboquant/turboquant.h"

namespace turboquant {
namespace {

template <typename T>
Result<T> Failed(const tq::Status& status) {
  return Result<T>::Error(status.message());
}

tq::GenerateRequest MakeRequest(const tq::TextAssets& text, const GenerateOptions& options,
                                std::vector<int32_t> prompt) {
  tq::GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling = text.sampling;
  tq::SamplingParams& sampling = request.sampling;
  sampling.temperature = options.temperature.value_or(sampling.temperature);
  sampling.top_p = options.top_p.value_or(sampling.top_p);
  sampling.top_k = options.top_k.value_or(sampling.top_k);
  sampling.min_p = options.min_p.value_or(sampling.min_p);
  sampling.repetition_penalty = options.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.seed = options.seed;
  request.max_tokens = options.max_tokens;
  request.min_tokens = options.min_tokens;
  request.end_ids = text.end_ids;
  return request;
}

FinishReason ToPublic(tq::FinishReason reason) {
  switch (reason) {
    case tq::FinishReason::kStop:
      return FinishReason::kStop;
    case tq::FinishReason::kLength:
      return FinishReason::kLength;
    default:
      return FinishReason::kCancelled;
  }
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
  auto session = tq::ModelSession::Open(session_options, options.progress);
  if (!session.ok()) return Failed<Loaded>(session.status());
  auto impl = std::make_unique<Impl>();
  impl->session = std::move(session).value();
  const auto text = impl->session->LoadText();
  if (!text.ok()) return Failed<Loaded>(text.status());
  impl->text = text.value();
  const auto engine =
      impl->session->StartEngine({.max_context = options.max_context, .max_sequences = 1});
  if (!engine.ok()) return Failed<Loaded>(engine.status());
  impl->engine = engine.value();
  return Result<Loaded>::Ok(Loaded(new Model(std::move(impl))));
}

Result<Generation> Model::Generate(const std::string& prompt, const GenerateOptions& options,
                                   const OnText& on_text) {
  auto ids = tq::EncodePrompt(*impl_->text, prompt,
                              {.use_chat_template = options.chat_template,
                               .system = options.system,
                               .enable_thinking = options.thinking});
  if (!ids.ok()) return Failed<Generation>(ids.status());
  return GenerateFromIds(ids.value(), options, on_text);
}

Result<Generation> Model::GenerateFromIds(const std::vector<int32_t>& prompt,
                                          const GenerateOptions& options, const OnText& on_text) {
  auto started = tq::Answer::Start(*impl_->engine, impl_->text->tokenizer.get(),
                                   MakeRequest(*impl_->text, options, prompt), options.stop);
  if (!started.ok()) return Failed<Generation>(started.status());
  tq::Answer& answer = *started.value();
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
  return Result<Generation>::Ok(std::move(generation));
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
