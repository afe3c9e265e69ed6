// serve --replay: what a server needs when a file takes the place of the weights.
#pragma once

#include <memory>

#include "api/text_assets.h"
#include "apps/serve_flags.h"
#include "base/status.h"
#include "engine/engine.h"

namespace tq {

struct ReplaySession {
  TextAssets text;
  std::unique_ptr<Engine> engine;  // last: ends before what it uses
};

// Reads the tokenizer and the template of --model, and the answers of --replay.
// Errors: those of OpenSource, LoadTextAssets, ParseReplay and MakeReplayModel; kIo.
Result<std::unique_ptr<ReplaySession>> OpenReplay(const ServeFlags& flags);

}  // namespace tq
