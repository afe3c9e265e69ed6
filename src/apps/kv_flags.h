// Flags of the KV cache's format, the same for every command that keeps one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "codec/kv_format.h"

namespace tq {

struct KvFlags {
  std::string bits;  // a number, or a format's name
  std::string k_bits;
  std::string v_bits;
  std::string type;
  int64_t min_tokens = 0;
  int group_size = KvSettings().group_size;
};

void AddKvFlags(CLI::App& app, KvFlags& flags);
// Nothing where no flag was given: the session's choice (f16, in parity mode f32).
// Errors: kInvalidArgument.
Result<std::optional<KvSettings>> KvSettingsOf(const KvFlags& flags);

// What ParseKvSettings reads, separated by commas. Errors: its.
Result<std::vector<KvSettings>> ParseKvList(std::string_view text, const KvSettings& base);

}  // namespace tq
