// Any bytes as tokenizer.model: a clean Status, or a tokenizer that encodes and decodes a text.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = tq::Tokenizer::Load(tq::TokenizerFiles{.tokenizer_model = input});
  if (!tokenizer.ok()) return 0;
  // The end of the file is text as good as any: it holds what the charsmap and the pieces look for.
  for (const std::string_view text :
       {std::string_view("Hi  <s> 12 \xE2\x96\x81 caf\xC3\xA9\xFF "),
        input.substr(input.size() - std::min<size_t>(input.size(), 200))}) {
    const auto ids = (*tokenizer)->Encode(text, {.add_special_tokens = true});
    tq::Detokenizer detokenizer(**tokenizer, false);
    std::string streamed;
    for (const int32_t id : ids) streamed += detokenizer.Push(id);
    streamed += detokenizer.Finish();
    if (streamed != (*tokenizer)->Decode(ids, false)) std::abort();
  }
  return 0;
}
