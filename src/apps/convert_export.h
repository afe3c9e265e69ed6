// turboquant convert --to hf, --to gguf.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "apps/flags.h"
#include "apps/interrupts.h"
#include "base/status.h"

namespace tq {

struct ExportFlags {
  std::string to = "turboquant";
  std::string dtype;  // of --dtype, which both kinds of conversion have
  std::string type = "f16";
};

void AddExportFlags(CLI::App& app, ExportFlags& flags);

// Errors: kInvalidArgument for flags of `app` that were given and belong to another --to.
Status CheckExportFlags(const CLI::App& app, const ExportFlags& flags);

// Requires: flags.to is not "turboquant".
Status RunExport(const ExportFlags& flags, const std::string& source, const std::string& output,
                 const CommonFlags& common, int64_t max_shard_bytes, Interrupts& interrupts);

}  // namespace tq
