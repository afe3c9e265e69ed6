#include "support/byte_tokenizer.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq::test {
namespace {

// The printable stand-in of a byte in byte-level vocabularies, as UTF-8.
std::string ByteCharacter(int byte) {
  const auto is_plain = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
  };
  int code = byte;
  if (!is_plain(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += is_plain(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

Json AddedToken(int id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

Json Tokenizer() {
  Json vocab = Json::object();
  for (int b = 0; b < 256; ++b) vocab[ByteCharacter(b)] = b + kFirstByteId;
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array({AddedToken(1, "<s>"), AddedToken(2, "</s>"),
                                    AddedToken(3, "<|user|>"), AddedToken(4, "<|assistant|>")})},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocab},
        {"merges", Json::array()}}}};
}

constexpr const char* kTokenizerConfig =
    R"({"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": "{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"})";

}  // namespace

std::string ByteTokenizerJson() { return Tokenizer().dump(); }

std::string ByteTokenizerConfig() { return kTokenizerConfig; }

}  // namespace tq::test
