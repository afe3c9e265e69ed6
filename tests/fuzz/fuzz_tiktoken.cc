// Any bytes as tiktoken.model: a clean Status, or a tokenizer that encodes and decodes a short
// text. What follows a zero byte is the text. A file that starts with '+' gets a token for every
// byte in front, without which no file is complete.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/round_trip.h"
#include "tokenizer/tokenizer.h"

namespace {

std::string ByteRanks() {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string file;
  for (size_t byte = 0; byte < 256; ++byte) {
    file += kAlphabet[byte >> 2];
    file += kAlphabet[(byte & 3) << 4];
    file += "== " + std::to_string(byte) + "\n";
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string_view text = zero == std::string_view::npos ? std::string_view("Hi [BOS] 12\xFF")
                                                               : input.substr(zero + 1, 256);
  std::string file(input.substr(0, zero));
  if (file.starts_with('+')) file = ByteRanks() + file.substr(1);
  const auto tokenizer = tq::Tokenizer::Load(
      tq::TokenizerFiles{.tiktoken_model = file,
                         .tokenizer_config_json = R"({"tokenizer_class": "TikTokenTokenizer"})"});
  if (!tokenizer.ok()) return 0;
  tq::CheckRoundTrip(**tokenizer, text);
  return 0;
}
