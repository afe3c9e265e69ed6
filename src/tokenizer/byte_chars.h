// The byte-level alphabet: each byte has one printable character; bytes that are printable Latin-1
// stand for themselves, the others follow from U+0100 on in order. No state; any thread.
#pragma once

#include <string>
#include <string_view>

namespace tq::tok {

// Appends the characters of the bytes.
void AppendByteChars(std::string_view bytes, std::string* out);
// The bytes that the characters stand for; the text itself when one of them is no byte character.
std::string BytesOfChars(std::string_view text);

}  // namespace tq::tok
