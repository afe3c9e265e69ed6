#include "model/mixers/mla.h"

#include "model/rope.h"

namespace tq {

Result<std::unique_ptr<Mixer>> Mla::Load(const MlaSpec& spec, const std::string& prefix,
                                         int64_t hidden_size, TensorLoader& loader) {
  std::unique_ptr<Mla> out(new Mla(spec));
  const int64_t heads = spec.num_attention_heads;
  const NormSpec latent_norm = {.eps = spec.latent_eps};
  if (spec.q_lora_rank > 0) {
    const int64_t rank = spec.q_lora_rank;
    TQ_ASSIGN_OR_RETURN(out->q_a_proj_,
                        loader.LoadLinear(prefix + "q_a_proj", rank, hidden_size, spec.bias));
    TQ_ASSIGN_OR_RETURN(out->q_norm_,
                        Norm::Load(latent_norm, prefix + "q_a_layernorm.weight", rank, loader));
    TQ_ASSIGN_OR_RETURN(out->q_b_proj_, loader.LoadLinear(prefix + "q_b_proj",
                                                          heads * out->query_dim(), rank, false));
  } else {
    TQ_ASSIGN_OR_RETURN(out->q_proj_, loader.LoadLinear(prefix + "q_proj", heads * out->query_dim(),
                                                        hidden_size, false));
  }
  TQ_ASSIGN_OR_RETURN(out->kv_a_proj_, loader.LoadLinear(prefix + "kv_a_proj_with_mqa",
                                                         out->key_dim(), hidden_size, spec.bias));
  TQ_ASSIGN_OR_RETURN(out->kv_norm_, Norm::Load(latent_norm, prefix + "kv_a_layernorm.weight",
                                                spec.kv_lora_rank, loader));
  TQ_RETURN_IF_ERROR(out->LoadHeads(prefix, loader));
  if (!spec.gate_name.empty()) {
    TQ_ASSIGN_OR_RETURN(
        out->gate_proj_,
        loader.LoadLinear(prefix + spec.gate_name, heads * spec.v_head_dim, hidden_size, false));
  }
  TQ_ASSIGN_OR_RETURN(out->o_proj_, loader.LoadLinear(prefix + "o_proj", hidden_size,
                                                      heads * spec.v_head_dim, spec.bias));
  if (spec.indexer) {
    TQ_ASSIGN_OR_RETURN(out->index_, TokenIndex::Load(*spec.indexer, spec.rope, prefix + "indexer.",
                                                      hidden_size, spec.q_lora_rank, loader));
  }
  return std::unique_ptr<Mixer>(std::move(out));
}

// kv_b_proj holds, per head, the rows of the key part, then those of the value part. MLX
// checkpoints store the two apart, the key part transposed.
Status Mla::LoadHeads(const std::string& prefix, TensorLoader& loader) {
  const int64_t heads = spec_.num_attention_heads;
  const int64_t nope = spec_.qk_nope_head_dim;
  const int64_t value = spec_.v_head_dim;
  const int64_t rank = spec_.kv_lora_rank;
  if (loader.Has(prefix + "kv_b_proj.weight")) {
    std::vector<MatrixPart> keys;
    std::vector<MatrixPart> all;
    for (int64_t h = 0; h < heads; ++h) all.push_back({h * (nope + value), nope, true});
    for (int64_t h = 0; h < heads; ++h) all.push_back({h * (nope + value) + nope, value, false});
    TQ_ASSIGN_OR_RETURN(query_to_latent_, loader.MatrixParts(prefix + "kv_b_proj.weight",
                                                             heads * (nope + value), rank, all));
    const auto middle = query_to_latent_.begin() + heads;
    latent_to_value_.assign(std::make_move_iterator(middle),
                            std::make_move_iterator(query_to_latent_.end()));
    query_to_latent_.erase(middle, query_to_latent_.end());
    return Status::Ok();
  }
  for (int64_t h = 0; h < heads; ++h) {
    const std::string head = std::to_string(h) + ".weight";
    TQ_ASSIGN_OR_RETURN(std::unique_ptr<Weight> to_latent,
                        loader.Matrix(prefix + "embed_q." + head, rank, nope, TensorRole::kSmall));
    TQ_ASSIGN_OR_RETURN(
        std::unique_ptr<Weight> to_value,
        loader.Matrix(prefix + "unembed_out." + head, value, rank, TensorRole::kSmall));
    query_to_latent_.push_back(std::move(to_latent));
    latent_to_value_.push_back(std::move(to_value));
  }
  return Status::Ok();
}

CacheNeeds Mla::Needs(const KvSettings& settings) const {
  CacheNeeds needs;
  needs.paged.push_back({.settings = settings,
                         .num_kv_heads = 1,
                         .head_dim = static_cast<int>(key_dim()),
                         .v_head_dim = spec_.kv_lora_rank,
                         .values = KvValues::kKeyPrefix});
  if (index_) index_->AddNeeds(settings, needs);
  return needs;
}

// The rope part is the tail of each key_dim row.
void Mla::Rotate(StepContext& step, float* x, int num_heads) const {
  ApplyRope(step, spec_.rope,
            {x, num_heads, static_cast<int>(key_dim()), spec_.kv_lora_rank, spec_.interleaved});
}

void Mla::AppendLatent(StepContext& step, const float* x, LayerCache& cache) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t rank = spec_.kv_lora_rank;
  float* key = step.Floats(rows * key_dim());
  float* latent = step.Floats(rows * rank);
  Project(step, x, rows, {{&kv_a_proj_, key}});
  step.backend.CopyRows({key, key_dim(), latent, rank, rows, rank});
  kv_norm_.Apply(step, latent, latent, rows, rank);
  step.backend.CopyRows({latent, rank, key, key_dim(), rows, rank});
  Rotate(step, key, 1);
  const LayerCache::Paged& paged = cache.paged[0];
  step.backend.KvAppend(
      {&step.plan, paged.layout, paged.pages.data(), key, nullptr, paged.exact_pages()});
}

void Mla::PerHead(StepContext& step, const std::vector<std::unique_ptr<Weight>>& weights,
                  const float* x, int64_t x_stride, float* y, int64_t y_stride) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t heads = spec_.num_attention_heads;
  const int64_t in = weights[0]->cols();
  const int64_t out = weights[0]->rows();
  MatMulArgs* args = step.scratch.Alloc<MatMulArgs>(static_cast<size_t>(heads));
  if (rows == 1) {  // rows of one token need no regrouping
    for (int64_t h = 0; h < heads; ++h) {
      args[h] = {weights[static_cast<size_t>(h)].get(), x + h * x_stride, nullptr, y + h * y_stride,
                 1};
    }
    step.backend.MatMul({args, static_cast<size_t>(heads)}, step.scratch);
    return;
  }
  float* heads_in = step.Floats(heads * rows * in);  // [H, T, in]
  float* heads_out = step.Floats(heads * rows * out);
  for (int64_t h = 0; h < heads; ++h) {
    float* to = heads_in + h * rows * in;
    step.backend.CopyRows({x + h * x_stride, heads * x_stride, to, in, rows, in});
    args[h] = {weights[static_cast<size_t>(h)].get(), to, nullptr, heads_out + h * rows * out,
               rows};
  }
  step.backend.MatMul({args, static_cast<size_t>(heads)}, step.scratch);
  for (int64_t h = 0; h < heads; ++h) {
    step.backend.CopyRows(
        {heads_out + h * rows * out, out, y + h * y_stride, heads * y_stride, rows, out});
  }
}

void Mla::ProjectQuery(StepContext& step, const float* in, float* keys_q) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t heads = spec_.num_attention_heads;
  const int64_t rope_dim = spec_.qk_rope_head_dim;
  float* q = step.Floats(rows * heads * query_dim());  // [T, H, nope | rope]
  Project(step, in, rows, {{spec_.q_lora_rank > 0 ? &q_b_proj_ : &q_proj_, q}});
  PerHead(step, query_to_latent_, q, query_dim(), keys_q, key_dim());
  step.backend.CopyRows({q + spec_.qk_nope_head_dim, query_dim(), keys_q + spec_.kv_lora_rank,
                         key_dim(), rows * heads, rope_dim});
  Rotate(step, keys_q, spec_.num_attention_heads);
}

void Mla::Forward(StepContext& step, const float* x, float* y, KvCache& cache, size_t layer) const {
  const ScratchScope scope(step.scratch);
  const int64_t rows = step.num_tokens();
  const int64_t heads = spec_.num_attention_heads;
  LayerCache& own = cache.layer(layer);
  const float* in = x;
  if (spec_.q_lora_rank > 0) {
    float* latent = step.Floats(rows * spec_.q_lora_rank);
    Project(step, x, rows, {{&q_a_proj_, latent}});
    q_norm_.Apply(step, latent, latent, rows, spec_.q_lora_rank);
    in = latent;
  }
  float* keys_q = step.Floats(rows * heads * key_dim());
  ProjectQuery(step, in, keys_q);
  AppendLatent(step, x, own);
  TokenIndex::Selection selection;
  if (index_) selection = index_->Select(step, x, in, own);
  float* latents = step.Floats(rows * heads * spec_.kv_lora_rank);
  const LayerCache::Paged& paged = own.paged[0];
  step.backend.Attention({.plan = &step.plan,
                          .layout = paged.layout,
                          .pages = paged.pages.data(),
                          .q = keys_q,
                          .out = latents,
                          .num_heads = spec_.num_attention_heads,
                          .scale = spec_.scale,
                          .selected = selection.bits,
                          .selected_stride = selection.stride,
                          .exact = paged.exact_pages()},
                         step.scratch);
  float* mixed = step.Floats(rows * heads * spec_.v_head_dim);
  PerHead(step, latent_to_value_, latents, spec_.kv_lora_rank, mixed, spec_.v_head_dim);
  if (!spec_.gate_name.empty()) {
    float* gate = step.Floats(rows * heads * spec_.v_head_dim);
    Project(step, x, rows, {{&gate_proj_, gate}});
    step.backend.Glu({Activation::kSigmoid, gate, mixed, mixed, rows * heads * spec_.v_head_dim});
  }
  Project(step, mixed, rows, {{&o_proj_, y}});
}

void Mla::VisitWeights(WeightVisitor visit, void* context) const {
  VisitLinears(visit, context,
               {&q_proj_, &q_a_proj_, &q_b_proj_, &kv_a_proj_, &gate_proj_, &o_proj_});
  for (const auto& weight : query_to_latent_) visit(context, o_proj_.name + ".kv_b", *weight);
  for (const auto& weight : latent_to_value_) visit(context, o_proj_.name + ".kv_b", *weight);
}

}  // namespace tq
