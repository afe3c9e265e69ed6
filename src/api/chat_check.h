// Whether a checkpoint's chat template can be used, without its vocabulary.
#pragma once

#include "base/status.h"
#include "weights/source.h"

namespace tq {

// Ok also when there is none. Errors: as TextAssets::chat_status.
Status CheckChatTemplate(const WeightSource& source);

}  // namespace tq
