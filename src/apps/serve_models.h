// The models of `serve`: what their headers say, and how they are loaded.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/serve_flags.h"
#include "apps/terminal.h"
#include "base/status.h"
#include "server/service.h"

namespace tq {

// A --model of `serve`.
struct ServeModel {
  std::vector<std::string> names;  // for clients; the first one is its own
  std::string path;
};

// Of an argument [NAME[,NAME...]=]PATH; PATH as ModelPath takes it. What exists is a path, whatever
// is in it. Errors: kInvalidArgument, kNotFound.
Result<ServeModel> ParseServeModel(const std::string& argument);
// For CLI::Option::check.
CLI::Validator ServeModelArgument();

struct ServeModels {
  std::vector<server::ModelEntry> entries;
  server::PoolOptions pool;
};
// Reads headers, tokenizers and templates; with --replay the file of answers. console: for the
// progress of loads. Errors: those of OutlineSession; a model without a tokenizer; names of several
// models that are given by --served-model-name.
Result<ServeModels> DescribeModels(const ServeFlags& flags, const Console& console);

}  // namespace tq
