// The value of tokenizer.ggml.pre -> what Hugging Face's tokenizer.json says about splitting text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {

struct GgufPreTokenizer {
  Json pre_tokenizer;
  Json normalizer;             // null or {"type": "NFC"}
  bool ignore_merges = false;  // a whole piece that is in the vocabulary wins over its merges
  bool add_bos = false;        // when the file does not say
};

// Empty for a name that is not known: never guess.
std::optional<GgufPreTokenizer> FindGgufPreTokenizer(std::string_view name);
std::string KnownGgufPreTokenizers();

// The first name whose splitting is that of a tokenizer.json's pre_tokenizer and normalizer; empty
// when there is none.
std::string FindGgufPreTokenizerName(const Json& pre_tokenizer, const Json& normalizer,
                                     bool ignore_merges);

}  // namespace tq
