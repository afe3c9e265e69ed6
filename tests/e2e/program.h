// Runs the built program as a user would, through the shell.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace tq::test {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// args: shell text after the program's name. input: what stdin gets. environment: shell text in
// front of it, "NAME=value ...".
Outcome RunProgram(const std::string& args, const std::string& input = "",
                   const std::string& environment = "");

// Its output as one JSON value; null, and a failure of the test, when it is none.
Json ParseOut(const Outcome& outcome);

// "" when it is a failure with this exit code and exactly one line "error: ..." on stderr that
// holds all of `parts`; else what is wrong.
std::string CheckError(const Outcome& outcome, int exit_code,
                       const std::vector<std::string>& parts);

// A new folder, removed with all that is in it at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tq::test
