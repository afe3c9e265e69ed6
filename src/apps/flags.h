// Flags that several commands share. Only this folder reads flags and the environment.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "api/model_session.h"
#include "apps/terminal.h"
#include "base/status.h"

namespace tq {

struct CommonFlags {
  int threads = 0;
  std::string backend;
  std::string isa;
  std::string activations = "int8";
  double memory_gb = 0;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

enum class Compute : uint8_t { kModel, kThreads, kNone };

// Every command accepts all of them; --help shows those that the command uses.
void AddCommonFlags(CLI::App& app, CommonFlags& flags, Compute compute);
// --model PATH, required.
void AddModelFlag(CLI::App& app, std::string& model);
// Ends --help.
void SetExamples(CLI::App& app, std::initializer_list<std::string_view> lines);

BackendOptions BackendOptionsOf(const CommonFlags& flags);

// Opens the checkpoint with a progress bar.
Result<std::unique_ptr<ModelSession>> OpenSession(const std::string& model,
                                                  const CommonFlags& flags, const Console& console,
                                                  const std::optional<KvSettings>& kv = {});

// Numbers of [low, high], not spelled out in --help.
template <typename T>
CLI::Validator InRange(T low, T high) {
  CLI::Validator range = CLI::Range(low, high);
  range.description("");
  return range;
}

// "1,2,3" or "1 2 3". Errors: kInvalidArgument naming the piece that is no id.
Result<std::vector<int32_t>> ParseIds(std::string_view text);
// For CLI::Option::check: "" or what is wrong.
std::string CheckIds(const std::string& text);

// All of stdin. Errors: kInvalidArgument beyond 1 GB, kIo.
Result<std::string> ReadStdin();
// Errors: kInvalidArgument naming the first bad byte. `what` names the text.
Status CheckUtf8(std::string_view text, std::string_view what);

}  // namespace tq
