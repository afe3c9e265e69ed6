// PostProcessor: the special tokens that go before and behind the ids of a text. A value; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tq::tok {

struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
};

// Errors: kCorrupt, kUnsupported (unknown type, a template that does not hold the text once).
Result<PostProcessor> MakePostProcessor(const Json& json, const std::string& where);

}  // namespace tq::tok
