// --config FILE: the flags of a command as keys of a file, in the form that CLI11 reads (TOML
// without sections, INI).
#pragma once

#include <CLI/CLI.hpp>

namespace tq {

// What the command line says wins over the file. Flags of the empty group are no keys.
void AddConfigFlag(CLI::App& app);

}  // namespace tq
