#include "weights/gguf_pretokenizer.h"

#include <span>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

// The expressions that a family splits by, one after the other, as its tokenizer.json spells them.
using Expressions = std::span<const char* const>;
// clang-format off
constexpr const char* kLlama3[] = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr const char* kQwen2[] = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+)re"
    R"re([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr const char* kQwen35[] = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr const char* kO200k[] = {
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)re"
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)re"
    R"re([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr const char* kTekken[] = {
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)re"
    R"re(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr const char* kDeepSeek[] = {
    R"re(\p{N}{1,3})re",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"re([!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)re"
    R"re([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|)re"
    R"re(\s+(?!\S)|\s+)re"};
constexpr const char* kKimi[] = {
    R"re([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)re"
    R"re([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)re"
    R"re([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// clang-format on
// Two families split with GPT-2's rules, which the byte-level step has built in.
constexpr Expressions kGpt2 = {};

struct Row {
  std::string_view name;
  Expressions expressions;
  bool digits = false;  // single digits first
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

constexpr Row kRows[] = {
    {.name = "llama-bpe", .expressions = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama3", .expressions = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .expressions = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "falcon3", .expressions = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "pixtral", .expressions = kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "smaug-bpe", .expressions = kLlama3},
    {.name = "dbrx", .expressions = kLlama3},
    {.name = "glm4", .expressions = kLlama3, .ignore_merges = true},
    {.name = "chatglm-bpe", .expressions = kLlama3, .ignore_merges = true},
    {.name = "qwen2", .expressions = kQwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .expressions = kQwen2, .nfc = true},
    {.name = "megrez", .expressions = kQwen2, .nfc = true},
    {.name = "qwen35", .expressions = kQwen35, .nfc = true},
    {.name = "gpt-4o", .expressions = kO200k},
    {.name = "llama4", .expressions = kO200k},
    {.name = "kanana2", .expressions = kO200k},
    {.name = "tekken", .expressions = kTekken, .ignore_merges = true, .add_bos = true},
    {.name = "deepseek-v3", .expressions = kDeepSeek},
    {.name = "kimi-k2", .expressions = kKimi},
    {.name = "smollm", .expressions = kGpt2, .digits = true},
    {.name = "starcoder", .expressions = kGpt2, .digits = true},
    {.name = "refact", .expressions = kGpt2, .digits = true},
    {.name = "command-r", .expressions = kGpt2, .digits = true},
    {.name = "codeshell", .expressions = kGpt2, .digits = true},
    {.name = "exaone", .expressions = kGpt2, .digits = true},
    {.name = "gpt-2", .expressions = kGpt2},
    {.name = "phi-2", .expressions = kGpt2},
    {.name = "mpt", .expressions = kGpt2},
    {.name = "olmo", .expressions = kGpt2},
};

// Maps bytes to printable characters; with use_regex it splits as GPT-2 does.
Json ByteLevel(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json Steps(const Row& row) {
  Json out = Json::array();
  if (row.digits) out.push_back({{"type", "Digits"}, {"individual_digits", true}});
  for (const char* expression : row.expressions) {
    out.push_back({{"type", "Split"},
                   {"pattern", {{"Regex", expression}}},
                   {"behavior", "Isolated"},
                   {"invert", false}});
  }
  out.push_back(ByteLevel(row.expressions.empty()));
  return out;
}

// One line per step with all that decides where text is cut. Empty: a step that no row has.
std::string Signature(const Json& pre_tokenizer) {
  const std::string type = pre_tokenizer.value("type", "");
  if (type == "Sequence") {
    std::string out;
    for (const Json& step : pre_tokenizer.value("pretokenizers", Json::array())) {
      const std::string part = step.is_object() ? Signature(step) : "";
      if (part.empty()) return "";
      out += part;
    }
    return out;
  }
  if (type == "Digits" && pre_tokenizer.value("individual_digits", false)) return "digits\n";
  if (type == "ByteLevel" && !pre_tokenizer.value("add_prefix_space", true)) {
    return pre_tokenizer.value("use_regex", true) ? "bytes with expression\n" : "bytes\n";
  }
  const Json pattern = pre_tokenizer.value("pattern", Json::object());
  const bool isolated =
      pre_tokenizer.value("behavior", "") == "Isolated" && !pre_tokenizer.value("invert", false);
  if (type != "Split" || !isolated || !pattern.contains("Regex")) return "";
  return "split " + pattern.value("Regex", "") + '\n';
}

}  // namespace

std::optional<GgufPreTokenizer> FindGgufPreTokenizer(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    GgufPreTokenizer out;
    out.pre_tokenizer = {{"type", "Sequence"}, {"pretokenizers", Steps(row)}};
    if (row.nfc) out.normalizer = {{"type", "NFC"}};
    out.ignore_merges = row.ignore_merges;
    out.add_bos = row.add_bos;
    return out;
  }
  return std::nullopt;
}

std::string KnownGgufPreTokenizers() {
  std::string out;
  for (const Row& row : kRows) out += (out.empty() ? "" : ", ") + std::string(row.name);
  return out;
}

std::string FindGgufPreTokenizerName(const Json& pre_tokenizer, const Json& normalizer,
                                     bool ignore_merges) {
  try {
    const std::string wanted = Signature(pre_tokenizer);
    const bool nfc = normalizer.is_object() && normalizer.value("type", "") == "NFC";
    if (wanted.empty() || (!nfc && !normalizer.is_null())) return "";
    for (const Row& row : kRows) {
      if (row.nfc != nfc || row.ignore_merges != ignore_merges) continue;
      if (Signature({{"type", "Sequence"}, {"pretokenizers", Steps(row)}}) == wanted) {
        return std::string(row.name);
      }
    }
  } catch (const Json::exception&) {  // a value of another type than any row's
  }
  return "";
}

}  // namespace tq
