// A constraint that begins after the model's reasoning: what it thinks is free text, what it
// answers is not. It also ends reasoning that has become too long.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sampling/constraint.h"
#include "tokenizer/tokenizer.h"

namespace tq {

struct ThoughtMarks {
  // The tokens that open reasoning, if the answer begins with them; none: the prompt has opened it.
  std::vector<int32_t> begin_ids;
  std::string end;                      // the text that closes it
  std::vector<int32_t> end_ids = {};    // may not come while it thinks
  int64_t budget = -1;                  // after so many tokens close_ids come; -1: no limit
  std::vector<int32_t> close_ids = {};  // of `end`
};

// inner: of the answer itself; null: it is free. The tokenizer must outlive it. Text of the closing
// token after `end` is not given to inner (a closing mark is a token of its own in the models that
// have one). Requires: with a budget, close_ids are not empty.
std::unique_ptr<Constraint> MakeAfterReasoning(std::unique_ptr<Constraint> inner,
                                               ThoughtMarks marks, const Tokenizer& tokenizer);

}  // namespace tq
