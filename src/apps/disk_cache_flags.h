// Flags of the disk prompt cache, for every command that answers prompts.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "apps/terminal.h"
#include "engine/engine.h"

namespace tq {

struct DiskCacheFlags {
  std::optional<std::string> folder;  // set: on; "": the default one
  double budget_gb = 10;
  int64_t min_tokens = 512;
  int64_t save_every = 1024;
  bool no_prefill_checkpoints = false;
};

void AddDiskCacheFlags(CLI::App& app, DiskCacheFlags& flags);

// Off unless asked for. model: the path as given, for the name of the default folder.
// Errors: kInvalidArgument when there is no home for a default folder.
Result<DiskCacheOptions> MakeDiskCacheOptions(const DiskCacheFlags& flags,
                                              const std::string& model);

// What went wrong with the cache while the answer came, if anything did.
void NoteDiskCacheError(const Console& console, const Engine& engine);

}  // namespace tq
