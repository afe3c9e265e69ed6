// serve --replay: a file takes the place of the weights.
#pragma once

#include "apps/serve_flags.h"
#include "apps/serve_models.h"
#include "base/status.h"
#include "server/service.h"

namespace tq {

// A model that reads its tokenizer and template, and the answers of --replay. The caller gives it a
// name.
// Errors: those of OpenSource, LoadTextAssets, ParseReplay and MakeReplayModel; kIo.
Result<server::ModelEntry> DescribeReplay(const ServeFlags& flags, const ServeModel& model);

}  // namespace tq
