// How a checkpoint makes one vector of a text: what the files of sentence-transformers say.
#pragma once

#include "base/status.h"
#include "engine/pooling.h"
#include "weights/source.h"

namespace tq {

struct EmbeddingSettings {
  Pooling pooling = Pooling::kLast;
  bool normalize = true;  // to length 1
};

// modules.json, and config.json of its Pooling module; without modules.json the defaults. Errors:
// kUnsupported naming a module or a kind of pooling that is not computed here; kCorrupt.
Result<EmbeddingSettings> ReadEmbeddingSettings(const WeightSource& source);

}  // namespace tq
