// Task suites: one JSON object a line, {"kind", "messages", "answer"} and perhaps "tools" and
// "enable_thinking" (tools/demo_model/README.md).
#pragma once

#include <string>
#include <vector>

#include "api/text_assets.h"
#include "base/status.h"
#include "eval/task_suite.h"

namespace tq {

// Every `every`-th line, its messages rendered by the checkpoint's chat template. Errors: kNotFound
// (no template or tokenizer), kCorrupt and kInvalidArgument naming the line.
Result<std::vector<Task>> ReadTaskFile(const std::string& path, const TextAssets& assets,
                                       int64_t every);

}  // namespace tq
