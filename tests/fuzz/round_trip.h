// What every fuzz target of a tokenizer asks once it has loaded one: streamed text is the whole
// text.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace tq {

inline void CheckRoundTrip(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.Encode(text, {.add_special_tokens = true});
  Detokenizer detokenizer(tokenizer, false);
  std::string streamed;
  for (const int32_t id : ids) streamed += detokenizer.Push(id);
  streamed += detokenizer.Finish();
  if (streamed != tokenizer.Decode(ids, false)) std::abort();
}

}  // namespace tq
