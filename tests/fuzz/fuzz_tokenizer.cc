// Any bytes as tokenizer.json: a clean Status, or a tokenizer that encodes and decodes a short
// text.
#include <cstdint>
#include <string_view>

#include "fuzz/round_trip.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // What follows a zero byte is the text; a JSON file has none.
  const size_t zero = input.find('\0');
  const std::string_view text = zero == std::string_view::npos ? std::string_view("Hi <s> 12\xFF")
                                                               : input.substr(zero + 1, 64);
  const auto tokenizer = tq::Tokenizer::Load(input.substr(0, zero), "");
  if (!tokenizer.ok()) return 0;
  tq::CheckRoundTrip(**tokenizer, text);
  return 0;
}
