// A constraint that begins after the model's reasoning: what it thinks is free text, what it
// answers is not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sampling/constraint.h"
#include "tokenizer/tokenizer.h"

namespace tq {

struct ThoughtMarks {
  // The token that opens reasoning, if the answer begins with it; -1: the prompt has opened it.
  int32_t begin_id = -1;
  std::string end;               // the text that closes it
  std::vector<int32_t> end_ids;  // may not come while it thinks
};

// inner: of the answer itself. The tokenizer must outlive it. Text of the closing token after `end`
// is not given to inner (a closing mark is a token of its own in the models that have one).
std::unique_ptr<Constraint> MakeAfterReasoning(std::unique_ptr<Constraint> inner,
                                               ThoughtMarks marks, const Tokenizer& tokenizer);

}  // namespace tq
