#include "plan/sized_model.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/loader.h"

namespace tq {

Result<SizedModel> SizeModel(const WeightSource& source, const Backend& backend) {
  SizedModel out;
  out.backend = backend.Sizing();
  if (out.backend == nullptr) {
    return Unsupported("backend " + std::string(backend.name()) + ": cannot tell its sizes");
  }
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument("config.json"));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, "config.json"));
  TQ_ASSIGN_OR_RETURN(ModelSpec spec, ParseModelSpec(config, source.facts()));
  const bool tied = spec.tie_word_embeddings;
  WeightLoader loader(source, *out.backend, ConfigRotates(config), {}, MatrixValues::kShapes);
  TQ_ASSIGN_OR_RETURN(out.model, Model::LoadFrom(std::move(spec), loader));
  TQ_RETURN_IF_ERROR(loader.CheckAllUsed(tied));
  out.num_matrices = static_cast<int64_t>(out.model->Weights().size());
  out.float_bytes = loader.float_bytes();
  out.load_peak = loader.peak_bytes();
  return out;
}

}  // namespace tq
