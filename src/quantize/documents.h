// The documents of a checkpoint beside its weights: tokenizer, templates, generation settings.
#pragma once

#include <string>

#include "base/status.h"
#include "weights/source.h"

namespace tq {

// All but config.json and the index of shards, which belong to the weights. Errors: what the source
// says; kIo.
Status CopyDocuments(const WeightSource& source, const std::string& folder);

}  // namespace tq
