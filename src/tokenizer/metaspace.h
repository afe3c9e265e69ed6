// The settings that the Metaspace pre-tokenizer and the Metaspace decoder share.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"

namespace tq::tok {

struct MetaspaceConfig {
  enum class Prepend { kAlways, kFirst, kNever };
  std::string replacement;  // one character
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};

// Errors: kCorrupt, kUnsupported (unknown prepend_scheme).
Result<MetaspaceConfig> ParseMetaspace(const Json& json, const std::string& where);

}  // namespace tq::tok
