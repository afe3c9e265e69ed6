// What holds an answer to a form: the grammar of a format, or of calls that must come. Thoughts
// before it stay free, within their budget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "grammar/grammar_compiler.h"
#include "server/call.h"
#include "server/generation.h"

namespace tq::server {

// Of the whole answer. Errors: what cannot be enforced, by name.
Result<std::unique_ptr<Constraint>> ConstrainFormat(const Call& call, const GrammarSpec& format,
                                                    const AnswerPlan& plan);

// The answer is calls of the plan's tools: of those named, of any when there are no names; one when
// plan.one_call. Errors: a syntax without a grammar.
Result<std::unique_ptr<Constraint>> ConstrainCalls(const Call& call,
                                                   const std::vector<std::string>& names,
                                                   const AnswerPlan& plan);

// The answer is calls of the plan's tools, or a text of the format. Errors: what one of them alone
// says; a syntax without a grammar, naming `field`.
Result<std::unique_ptr<Constraint>> ConstrainCallsOrFormat(const Call& call,
                                                           const GrammarSpec& format,
                                                           const std::string& field,
                                                           const AnswerPlan& plan);

// Gives the plan a constraint (null: the answer is free) behind its thoughts, which are closed
// after `budget` tokens (-1: no limit). Calls are greedy where the service says so.
// Requires: plan.parser.
void SetConstraint(const Call& call, std::unique_ptr<Constraint> constraint, int64_t budget,
                   AnswerPlan& plan);

}  // namespace tq::server
