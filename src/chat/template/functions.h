// The functions every template can call: range, dict, namespace, raise_exception ...
#pragma once

#include "chat/template/value.h"

namespace tq::jinja {

// kMissing when there is none of that name.
Value FindGlobal(Runtime& rt, std::string_view name);

}  // namespace tq::jinja
