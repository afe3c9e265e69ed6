#include "tokenizer/byte_chars.h"

#include <array>
#include <cstdint>

#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

constexpr bool IsPlain(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<uint16_t, 256> MakeCharOfByte() {
  std::array<uint16_t, 256> table{};
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = static_cast<uint16_t>(IsPlain(byte) ? byte : next++);
  }
  return table;
}
constexpr std::array<uint16_t, 256> kCharOfByte = MakeCharOfByte();

constexpr size_t kNumChars = 0x100 + 68;  // 68 bytes are not plain
constexpr std::array<int16_t, kNumChars> MakeByteOfChar() {
  std::array<int16_t, kNumChars> table{};
  for (int16_t& entry : table) entry = -1;
  for (size_t byte = 0; byte < 256; ++byte) table[kCharOfByte[byte]] = static_cast<int16_t>(byte);
  return table;
}
constexpr std::array<int16_t, kNumChars> kByteOfChar = MakeByteOfChar();

}  // namespace

void AppendByteChars(std::string_view bytes, std::string* out) {
  for (const char byte : bytes) AppendUtf8(kCharOfByte[static_cast<unsigned char>(byte)], out);
}

std::string BytesOfChars(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = NextChar(text, &pos);
    if (c >= kNumChars || kByteOfChar[c] < 0) return std::string(text);
    out.push_back(static_cast<char>(kByteOfChar[c]));
  }
  return out;
}

}  // namespace tq::tok
