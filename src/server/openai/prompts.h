// Prompts of requests that bring their own: a text, a list of ids, or a list of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "chat/request_json.h"
#include "server/served_model.h"

namespace tq::server {

// Texts get the tokenizer's BOS. Errors: kInvalidArgument naming the field; more than max_prompts.
Result<std::vector<std::vector<int32_t>>> ReadPrompts(const RequestNode& prompt,
                                                      const ServedModel& model, size_t max_prompts);

}  // namespace tq::server
