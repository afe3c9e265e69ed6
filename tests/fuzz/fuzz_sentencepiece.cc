// Any bytes as tokenizer.model: a clean Status, or a tokenizer that encodes and decodes a text.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/round_trip.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = tq::Tokenizer::Load(tq::TokenizerFiles{.tokenizer_model = input});
  if (!tokenizer.ok()) return 0;
  // The end of the file is text as good as any: it holds what the charsmap and the pieces look for.
  for (const std::string_view text :
       {std::string_view("Hi  <s> 12 \xE2\x96\x81 caf\xC3\xA9\xFF "),
        input.substr(input.size() - std::min<size_t>(input.size(), 200))}) {
    tq::CheckRoundTrip(**tokenizer, text);
  }
  return 0;
}
