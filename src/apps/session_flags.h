// The flags of a session.
#pragma once

#include <optional>
#include <string>

#include "api/model_session.h"
#include "apps/flags.h"

namespace tq {

SessionOptions SessionOptionsOf(const std::string& model, const CommonFlags& flags,
                                const std::optional<KvSettings>& kv);

}  // namespace tq
