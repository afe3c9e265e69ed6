#include "model/blocks/hyper_block.h"

namespace tq {

Result<HyperConnection> HyperConnection::Load(const ModelSpec& model, const std::string& prefix,
                                              bool writes_back, TensorLoader& loader) {
  HyperConnection out;
  out.num_streams_ = model.num_streams;
  out.hidden_ = model.hidden_size;
  out.rank_ = model.hyper_rank;
  const int64_t width = model.num_streams * model.hidden_size;
  TQ_ASSIGN_OR_RETURN(out.norm_,
                      Norm::Load(model.hyper_norm, prefix + "hc_norm.weight", width, loader));
  TQ_ASSIGN_OR_RETURN(out.mix_down_, loader.LoadLinear(prefix + "input_mix_weight_down",
                                                       model.hyper_rank, width, false));
  TQ_ASSIGN_OR_RETURN(out.mix_up_, loader.LoadLinear(prefix + "input_mix_weight_up", width,
                                                     model.hyper_rank, false));
  if (writes_back) {
    TQ_ASSIGN_OR_RETURN(out.inject_,
                        loader.LoadLinear(prefix + "block_inject_weight", model.num_streams, width,
                                          false, TensorRole::kSmall));
  }
  return out;
}

// in = mean over streams of sigmoid(up silu(down n / m)) * n; gains = 2 sigmoid(inject n / m).
void HyperConnection::Read(StepContext& step, const float* x, float* in, float* gains) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t width = num_streams_ * hidden_;
  float* normed = step.Floats(rows * width);
  float* scaled = step.Floats(rows * width);
  float* low = step.Floats(rows * rank_);
  float* mix = step.Floats(rows * width);
  norm_.Apply(step, x, normed, rows * num_streams_, hidden_, num_streams_);
  step.backend.Map({.x = normed,
                    .x_stride = width,
                    .out = scaled,
                    .num_rows = rows,
                    .n = width,
                    .scale = 1.0f / static_cast<float>(num_streams_)});
  if (gains != nullptr) {
    Project(step, scaled, rows, {{&mix_down_, low}, {&inject_, gains}});
    step.backend.Map({.x = gains,
                      .x_stride = num_streams_,
                      .out = gains,
                      .num_rows = rows,
                      .n = num_streams_,
                      .fn = MapFn::kSigmoid,
                      .scale = 2.0f});
  } else {
    Project(step, scaled, rows, {{&mix_down_, low}});
  }
  step.backend.Map(
      {.x = low, .x_stride = rank_, .out = low, .num_rows = rows, .n = rank_, .fn = MapFn::kSilu});
  Project(step, low, rows, {{&mix_up_, mix}});
  step.backend.Map({.x = mix,
                    .x_stride = width,
                    .out = mix,
                    .num_rows = rows,
                    .n = width,
                    .fn = MapFn::kSigmoid});
  step.backend.StreamMean({mix, normed, in, rows, num_streams_, hidden_});
}

void HyperConnection::Write(StepContext& step, const float* gains, const float* y, float* x) const {
  step.backend.StreamInject({gains, y, x, step.num_tokens(), num_streams_, hidden_});
}

void HyperConnection::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context, {&mix_down_, &mix_up_, &inject_});
}

Result<std::unique_ptr<Block>> HyperBlock::Load(const ModelSpec& model, const BlockSpec& spec,
                                                TensorLoader& loader) {
  auto block = std::make_unique<HyperBlock>();
  const int64_t hidden = model.hidden_size;
  block->hidden_ = hidden;
  block->num_streams_ = model.num_streams;
  if (spec.ngram) {
    TQ_ASSIGN_OR_RETURN(block->ngram_,
                        NgramEmbedding::Load(model, *spec.ngram, spec.prefix + "ple.", loader));
  }
  TQ_ASSIGN_OR_RETURN(
      block->mixer_connection_,
      HyperConnection::Load(model, spec.prefix + "attn_hyper_connection.", true, loader));
  TQ_ASSIGN_OR_RETURN(block->mixer_,
                      LoadMixer(spec.mixer, spec.prefix + spec.mixer_name, hidden, loader));
  TQ_ASSIGN_OR_RETURN(
      block->ffn_connection_,
      HyperConnection::Load(model, spec.prefix + "mlp_hyper_connection.", true, loader));
  TQ_ASSIGN_OR_RETURN(block->ffn_, LoadFfn(spec.ffn, spec.prefix + spec.ffn_name, hidden, loader));
  return std::unique_ptr<Block>(std::move(block));
}

// The n-gram embedding's state follows the mixer's.
CacheNeeds HyperBlock::Needs(const KvSettings& settings) const {
  CacheNeeds needs = mixer_->Needs(settings);
  if (ngram_ != nullptr) needs.state_floats += ngram_->state_floats();
  return needs;
}

void HyperBlock::Forward(StepContext& step, Residuals& residuals, KvCache& cache,
                         size_t layer) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  float* in = step.Floats(rows * hidden_);
  float* y = step.Floats(rows * hidden_);
  float* gains = step.Floats(rows * num_streams_);
  if (ngram_ != nullptr) {
    LayerCache& own = cache.layer(layer);
    ngram_->Add(step, residuals.x, own.State(own.state_floats - ngram_->state_floats()));
  }
  mixer_connection_.Read(step, residuals.x, in, gains);
  mixer_->Forward(step, in, y, cache, layer);
  mixer_connection_.Write(step, gains, y, residuals.x);
  ffn_connection_.Read(step, residuals.x, in, gains);
  ffn_->Forward(step, in, in, y);
  ffn_connection_.Write(step, gains, y, residuals.x);
}

void HyperBlock::VisitWeights(WeightVisitor visit, void* context) const {
  if (ngram_ != nullptr) ngram_->VisitWeights(visit, context);
  mixer_connection_.VisitWeights(visit, context);
  mixer_->VisitWeights(visit, context);
  ffn_connection_.VisitWeights(visit, context);
  ffn_->VisitWeights(visit, context);
}

}  // namespace tq
