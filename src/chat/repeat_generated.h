// Puts what was generated in place of the template's words for it (RenderedPrompt in prompt.h says
// when and why). Private to prompt.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "chat/messages.h"
#include "chat/prompt.h"

namespace tq {

// FNV-1a, to be continued: HashPrompt("ab", s) = HashPrompt("b", HashPrompt("a", s)).
inline constexpr uint64_t kPromptHashStart = 14695981039346656037U;
uint64_t HashPrompt(std::string_view text, uint64_t hash);

using RenderMessages =
    std::function<Result<std::string>(const std::vector<ChatMessage>&, bool add_generation_prompt)>;

// prompt.text: the template's rendering of messages. knows_thoughts: TemplateTraits. Changes text,
// repeated, plain and notes. Renders a few times, however many turns there are; never fails: a turn
// that cannot be placed keeps its words.
void RepeatGenerated(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
                     bool knows_thoughts, const RenderMessages& render, RenderedPrompt& prompt);

}  // namespace tq
