#include "e2e/program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/check.h"
#include "base/file.h"

namespace tq::test {
namespace {

std::string ReadAll(const std::string& path) {
  const auto text = ReadTextFile(path);
  TQ_CHECK(text.ok());
  return text.value();
}

}  // namespace

Outcome RunProgram(const std::string& args, const std::string& input,
                   const std::string& environment) {
  const TempFolder folder;
  TQ_CHECK(WriteFile(folder / "in", input).ok());
  const std::string command = environment + " " + TQ_PROGRAM + " " + args + " < " +
                              (folder / "in") + " > " + (folder / "out") + " 2> " +
                              (folder / "err");
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  outcome.out = ReadAll(folder / "out");
  outcome.err = ReadAll(folder / "err");
  return outcome;
}

Json ParseOut(const Outcome& outcome) {
  const auto json = ParseJson(outcome.out, "stdout");
  EXPECT_TRUE(json.ok()) << outcome.out << outcome.err;
  return json.ok() ? *json : Json();
}

std::string CheckError(const Outcome& outcome, int exit_code,
                       const std::vector<std::string>& parts) {
  if (outcome.exit_code != exit_code) {
    return "exit code " + std::to_string(outcome.exit_code) + ", stderr: " + outcome.err;
  }
  const bool one_line = std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1 &&
                        outcome.err.ends_with('\n') && outcome.err.starts_with("error: ");
  if (!one_line) return "not one line of error: " + outcome.err;
  for (const std::string& part : parts) {
    if (outcome.err.find(part) == std::string::npos)
      return "no \"" + part + "\" in: " + outcome.err;
  }
  return "";
}

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tq_e2e_XXXXXX").string();
  TQ_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tq::test
