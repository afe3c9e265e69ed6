// Arguments that are not one JSON object, as parts of a structural tag. Private to this folder.
#pragma once

#include <string>

#include "base/json.h"
#include "chat/output/argument_types.h"
#include "chat/output/tool_format.h"

namespace tq {

// One tag for each property, in the order of the schema; those that are not required may be left
// out. A text is free up to the closing tag, or one of its enum; everything else is JSON by its
// schema. White space may stand behind each.
OrderedJson TaggedArguments(const ToolFormat& format, const ToolTypes& types,
                            const std::string& tool, const OrderedJson& schema);

// key=value, ... with JSON values, which Python calls may have too.
OrderedJson PythonArguments(const OrderedJson& schema);

}  // namespace tq
