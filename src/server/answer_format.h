// Structured output: what a request says about the form of its answer, in the words of all APIs.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "chat/request_json.h"
#include "grammar/grammar_compiler.h"

namespace tq::server {

// response_format (chat), text.format (responses), output_config.format and output_format
// (messages); structured_outputs, guided_json / _regex / _choice / _grammar and grammar, as other
// servers have them. Nothing: free text. Errors: kInvalidArgument naming the field; two of them.
// field, if not null, gets the name of the one that says it.
Result<std::optional<GrammarSpec>> ReadAnswerFormat(const RequestNode& body,
                                                    std::string* field = nullptr);

}  // namespace tq::server
