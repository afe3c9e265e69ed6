// The tensors of a checkpoint folder under the names and in the shapes that the models ask for:
// renamed (aliases.h), fused projections parted (fused.h), stacks of experts taken apart
// (stacks.h). Nothing is copied: parts point into the mapped files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/source.h"

namespace tq {

// tensors: sorted by name, before and after. `where` names the folder in messages. Errors: kCorrupt
// (two tensors with one canonical name, shapes that do not fit).
Status CanonicalizeTensors(std::string_view model_type, const std::string& where,
                           std::vector<SourceTensor>& tensors);

}  // namespace tq
