// ToolGrammar: what the text of an answer that has to be a call looks like in a syntax, for a
// grammar compiler: what the parser (output_parser.h) then reads as calls of the tools. Schemas
// come as the tools have them; marks are spelled as text, also those that are special tokens.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "chat/messages.h"
#include "chat/output/output_syntax.h"

namespace tq {

struct ToolGrammarOptions {
  ToolSyntax syntax = ToolSyntax::kNone;
  bool several = true;  // calls in one answer
  // What may come instead of calls: JSON of a part as below. "": nothing.
  std::string otherwise = {};
  bool leading_space = true;  // white space may stand in front
  // Whether the tokenizer has a token of this text: some syntaxes have an older form without it.
  std::function<bool(std::string_view)> has_token = {};
};

// A structural tag: JSON of {"type": "sequence" | "or" | "star" | "optional" | "const_string" |
// "regex" | "json_schema" | "tag" with "any_text", ...}.
// The arguments of a call come in the order of its schema.
// Requires: tools is not empty. Errors: kInvalidArgument naming a syntax that has none.
Result<std::string> MakeToolGrammar(const std::vector<ToolSpec>& tools,
                                    const ToolGrammarOptions& options);

}  // namespace tq
