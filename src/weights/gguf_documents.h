// The JSON documents of a checkpoint folder, synthesized from the metadata of a GGUF file.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "weights/gguf_vocab.h"

namespace tq {

// Full Hugging Face form: normalizer, pre-tokenizer, model with merges, added tokens,
// post-processor, decoder. Errors: kUnsupported naming an unknown tokenizer.ggml.model or .pre,
// kCorrupt.
Result<std::string> GgufTokenizerJson(const GgufFile& file, const std::string& where);

// Special tokens, add_bos_token, chat templates. Errors: kCorrupt.
Result<std::string> GgufTokenizerConfigJson(const GgufFile& file, const std::string& where);

// bos_token_id, eos_token_id (a list of all ids that end a turn or text), pad_token_id.
Result<std::string> GgufGenerationConfigJson(const GgufFile& file, const std::string& where);

// Errors: kCorrupt for text that is not UTF-8.
Result<std::string> DumpDocument(const Json& document, const std::string& where);

}  // namespace tq
