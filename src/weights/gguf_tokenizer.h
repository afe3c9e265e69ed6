// tokenizer.json from the vocabulary of a GGUF file.
#pragma once

#include "base/json.h"
#include "weights/gguf_vocab.h"

namespace tq {

// Errors: kUnsupported naming an unknown tokenizer.ggml.model or tokenizer.ggml.pre, kCorrupt.
Result<Json> BuildGgufTokenizer(GgufKeys& keys);

// Whether a text begins with BOS: what the file says, else the default of its kind of tokenizer.
bool GgufAddsBos(GgufKeys& keys, const GgufVocab& vocab);

}  // namespace tq
