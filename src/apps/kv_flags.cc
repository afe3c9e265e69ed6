#include "apps/kv_flags.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tq {
namespace {

std::string CheckFormat(const std::string& text) {
  return ParseKvSettings(text, {}).status().message();
}

}  // namespace

void AddKvFlags(CLI::App& app, KvFlags& flags) {
  constexpr const char* kGroup = "KV cache (default: f16; with --activations f32: f32)";
  CLI::Option* type =
      app.add_option("--kv-type", flags.type, "f16, bf16, f32, int8, tq2 to tq8; K/V for two")
          ->check(CheckFormat)
          ->group(kGroup);
  CLI::Option* bits =
      app.add_option("--kv-bits", flags.bits, "Bits of a key or value: 2 to 8 (8: int8), 16")
          ->check(CheckFormat)
          ->excludes(type)
          ->group(kGroup);
  CLI::Option* k_bits = app.add_option("--kv-k-bits", flags.k_bits, "Of keys")
                            ->check(CheckFormat)
                            ->excludes(type)
                            ->excludes(bits)
                            ->group(kGroup);
  CLI::Option* v_bits = app.add_option("--kv-v-bits", flags.v_bits, "Of values; both or none")
                            ->check(CheckFormat)
                            ->excludes(type)
                            ->excludes(bits)
                            ->group(kGroup);
  k_bits->needs(v_bits);
  v_bits->needs(k_bits);
  app.add_option("--kv-min-tokens", flags.min_tokens,
                 "Keep the first tokens exact, in whole pages of 64")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20).description(""))
      ->group(kGroup);
  app.add_option("--kv-group-size", flags.group_size, "Values that share a scale")
      ->check(CLI::IsMember({16, 32, 64, 128}))
      ->capture_default_str()
      ->group(kGroup);
}

Result<std::optional<KvSettings>> KvSettingsOf(const KvFlags& flags) {
  KvSettings base;
  base.min_tokens = flags.min_tokens;
  base.group_size = flags.group_size;
  std::string text = flags.type;
  if (!flags.bits.empty()) text = flags.bits;
  if (!flags.k_bits.empty()) text = flags.k_bits + "/" + flags.v_bits;
  if (text.empty()) {
    if (flags.min_tokens == 0) return std::optional<KvSettings>();
    return InvalidArgument(
        "--kv-min-tokens: expected a compressed KV cache, found none: add --kv-bits, or "
        "--kv-k-bits "
        "with --kv-v-bits");
  }
  TQ_ASSIGN_OR_RETURN(const KvSettings settings, ParseKvSettings(text, base));
  return std::optional<KvSettings>(settings);
}

Result<std::vector<KvSettings>> ParseKvList(std::string_view text, const KvSettings& base) {
  std::vector<KvSettings> out;
  while (true) {
    const size_t end = std::min(text.find(','), text.size());
    TQ_ASSIGN_OR_RETURN(const KvSettings settings, ParseKvSettings(text.substr(0, end), base));
    out.push_back(settings);
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace tq
