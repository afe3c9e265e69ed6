// Layers of experts as the command line and files name them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tq {

// "0-5,42,44-47" -> ascending layers, each once. Errors: kInvalidArgument naming the piece.
Result<std::vector<int>> ParseLayerList(std::string_view text);

// JSON {"0": "ternary", "1": "2", ...}, or the same below "tiers" -> layer and codebook entries.
// where names the text. Errors: kInvalidArgument (an unknown tier, a key that is no layer, none at
// all), kCorrupt (no JSON).
Result<std::map<int, int>> ParseExpertLayerTiers(std::string_view text, std::string_view where);

// The tier of a codebook's length: "ternary", "2", "3", "4".
std::string TierName(int codebook_entries);

}  // namespace tq
