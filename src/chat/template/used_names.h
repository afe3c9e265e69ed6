// What a template asks for: variables of the caller, and keys of their values.
#pragma once

#include <set>
#include <string>

#include "chat/template/ast.h"

namespace tq::jinja {

struct UsedNames {
  std::set<std::string, std::less<>> variables;  // free names; built-in functions too
  std::set<std::string, std::less<>> keys;       // attributes and all string constants
};

UsedNames FindUsedNames(const TemplateTree& tree);

}  // namespace tq::jinja
