// README.md of a converted checkpoint: what it is and under whose terms.
#pragma once

#include <string>
#include <string_view>

#include "quantize/layer_bits.h"

namespace tq {

// "models/Qwen3-8B/" and "Qwen3-8B.gguf" give "Qwen3-8B".
std::string SourceName(const std::string& path);

// source_card: the source's README.md or "". Its front matter (license, languages) is kept, its
// text is not: that describes another checkpoint.
std::string ModelCard(std::string_view source_card, const std::string& source_name,
                      const QuantizeSettings& settings);

}  // namespace tq
