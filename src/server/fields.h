// Fields of a request body that all APIs share, with errors that name them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/text_assets.h"
#include "base/status.h"
#include "chat/prompt.h"
#include "chat/request_json.h"
#include "engine/request.h"

namespace tq::server {

// An object. Errors: kInvalidArgument with line and column.
Result<OrderedJson> ParseBody(std::string_view body);

// null and missing are nothing; booleans are no numbers, a whole number may be written as 3.0.
// Errors: kInvalidArgument naming field, range and value.
Result<std::optional<double>> OptionalNumber(const RequestNode& node, double low, double high);
Result<std::optional<int64_t>> OptionalInt(const RequestNode& node, int64_t low, int64_t high);
Result<std::optional<bool>> OptionalBool(const RequestNode& node);

// A text or a list of them; empty ones do not count. Errors: more than 64, or longer than 4096
// bytes.
Result<std::vector<std::string>> ReadStops(const RequestNode& node);

// temperature, top_p, top_k, min_p, typical_p, xtc_*, dry_*, repetition_, presence_ and
// frequency_penalty, bad_words, logit_bias, seed over the model's defaults. A sampled answer
// without seed gets a random one. Requires: text.tokenizer.
Result<SamplingParams> ReadSampling(const RequestNode& body, const TextAssets& text);

// chat_template_kwargs, over the defaults of the server -> variables of the template,
// enable_thinking among them. Where `options` says already whether to think, only the request can
// change it.
Status ReadTemplateVariables(const RequestNode& body, const OrderedJson& defaults,
                             ChatPromptOptions& options);

}  // namespace tq::server
