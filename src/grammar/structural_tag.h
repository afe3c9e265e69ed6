// Makes a structural tag ready for XGrammar: its schemas are prepared like others (json_schema.h),
// its fixed texts get stand-ins for special tokens.
#pragma once

#include <string_view>

#include "base/status.h"
#include "grammar/json_schema.h"
#include "grammar/special_marks.h"

namespace tq {

// Errors: kInvalidArgument, those of PrepareSchema.
Result<PreparedSchema> PrepareStructuralTag(std::string_view tag, SchemaMode mode,
                                            const RegexCheck& check_regex,
                                            const SpecialMarks& marks);

}  // namespace tq
