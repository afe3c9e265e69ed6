// Utf8Stream: whole characters out of bytes that come in pieces; what is no UTF-8 becomes U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace tq {

class Utf8Stream {
 public:
  // Appends to out all characters that are whole by now.
  void Push(std::string_view bytes, std::string& out) {
    for (const char c : bytes) PushByte(c, out);
  }
  void Finish(std::string& out) { Replace(out); }

 private:
  static constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

  void Replace(std::string& out) {
    if (!held_.empty()) out += kReplacement;
    held_.clear();
  }

  void PushByte(char c, std::string& out) {
    const auto byte = static_cast<unsigned char>(c);
    if (!held_.empty()) {
      if (Continues(byte)) {
        held_ += c;
        if (held_.size() < wanted_) return;
        out += held_;
        held_.clear();
        return;
      }
      Replace(out);
    }
    wanted_ = byte < 0x80   ? 1
              : byte < 0xC2 ? 0
              : byte < 0xE0 ? 2
              : byte < 0xF0 ? 3
              : byte < 0xF5 ? 4
                            : 0;
    if (wanted_ == 1) {
      out += c;
    } else if (wanted_ == 0) {
      out += kReplacement;
    } else {
      held_ = c;
    }
  }

  // Overlong forms, surrogates and what is beyond U+10FFFF end at the second byte.
  bool Continues(unsigned char byte) const {
    if (held_.size() > 1) return byte >= 0x80 && byte < 0xC0;
    const auto lead = static_cast<unsigned char>(held_[0]);
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0xA0 : lead == 0xF4 ? 0x90 : 0xC0;
    return byte >= low && byte < high;
  }

  std::string held_;
  size_t wanted_ = 0;
};

}  // namespace tq
