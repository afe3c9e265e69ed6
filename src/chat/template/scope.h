// Name resolution: every name of a template gets a slot, with Jinja's rules about which assignment
// is visible where (a loop body sees outer values and keeps its own; a macro sees what its
// definition's scope holds when it is called). Also looks filters and tests up.
#pragma once

#include "chat/template/ast.h"

namespace tq::jinja {

// Errors: kCorrupt, kUnsupported naming line and construct.
Status ResolveNames(TemplateTree* tree);

}  // namespace tq::jinja
