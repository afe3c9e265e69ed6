// The multi-head latent attention of the deepseek and kimi families, from config.json.
#pragma once

#include "model/arch/decoder_config.h"

namespace tq {

// rope: as MlaSpec::rope. Errors go to the reader.
MlaSpec ReadMla(ConfigReader& config, int64_t num_heads, int rope);

}  // namespace tq
