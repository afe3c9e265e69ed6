// --tool-syntax-greedy as a constraint: while the answer writes the syntax of a call, the most
// probable token comes. What may come is left to the constraint inside.
#pragma once

#include <memory>

#include "chat/output/tool_greedy.h"
#include "sampling/constraint.h"
#include "tokenizer/tokenizer.h"

namespace tq::server {

// inner: of the answer; null: it is free. The tokenizer must outlive it.
std::unique_ptr<Constraint> MakeGreedyCalls(std::unique_ptr<Constraint> inner,
                                            ToolSyntaxTracker tracker, const Tokenizer& tokenizer);

}  // namespace tq::server
