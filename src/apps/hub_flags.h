// Names of the Hugging Face Hub on the command line, and what the environment says about it, in the
// way of the Python package huggingface_hub.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "hub/pull.h"

namespace tq {

// HF_ENDPOINT, HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HF_TOKEN, HF_TOKEN_PATH and the token file.
HubOptions HubOptionsFromEnvironment();
// HF_HUB_OFFLINE.
bool IsHubOffline();

// For what is not the Hub's: $XDG_CACHE_HOME/turboquant.
std::string OwnCacheFolder();

// For --model: ORG/NAME[@REVISION], where no such path exists, becomes its folder in the cache; the
// name of a packaged model (hub/packaged_model.h) its file.
CLI::Validator ModelPath();

}  // namespace tq
