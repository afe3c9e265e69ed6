// tokenizer.json and the documents beside it -> the tokenizer.ggml.* keys of a GGUF file: the
// inverse of gguf_documents.h. Byte-level BPE and SentencePiece BPE; what GGUF cannot say is
// refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "weights/gguf_writer.h"
#include "weights/source.h"

namespace tq {

// Contents; empty: the checkpoint has no such document.
struct TokenizerDocuments {
  std::string tokenizer;          // tokenizer.json
  std::string tokenizer_config;   // tokenizer_config.json
  std::string generation_config;  // generation_config.json
  std::string config;             // config.json
  std::string chat_template;      // chat_template.jinja
};

// Errors: what the source says of documents that exist; kCorrupt.
Result<TokenizerDocuments> ReadTokenizerDocuments(const WeightSource& source);

// num_rows: of the embedding; ids without a token get a placeholder. Errors: kUnsupported (no
// tokenizer.json; a model, normalizer, pre-tokenizer or order of merges that no GGUF key
// describes), kCorrupt. warnings: what is left out.
Status AddGgufTokenizer(const TokenizerDocuments& documents, int64_t num_rows,
                        const std::string& where, GgufMetadata& out,
                        std::vector<std::string>& warnings);

}  // namespace tq
