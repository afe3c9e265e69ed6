// Base64 (RFC 4648 with padding): how tokenizer files spell bytes. No state; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tq::tok {

// Nothing when the text is not Base64: other characters, wrong length, bits beyond the end.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace tq::tok
