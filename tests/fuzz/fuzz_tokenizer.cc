// Any bytes as tokenizer.json: a clean Status, or a tokenizer that encodes and decodes a short
// text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // What follows a zero byte is the text; a JSON file has none.
  const size_t zero = input.find('\0');
  const std::string_view text = zero == std::string_view::npos ? std::string_view("Hi <s> 12\xFF")
                                                               : input.substr(zero + 1, 64);
  const auto tokenizer = tq::Tokenizer::Load(input.substr(0, zero), "");
  if (!tokenizer.ok()) return 0;
  const auto ids = (*tokenizer)->Encode(text, {.add_special_tokens = true});
  tq::Detokenizer detokenizer(**tokenizer, false);
  std::string streamed;
  for (const int32_t id : ids) streamed += detokenizer.Push(id);
  streamed += detokenizer.Finish();
  if (streamed != (*tokenizer)->Decode(ids, false)) std::abort();
  return 0;
}
