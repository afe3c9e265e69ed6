// The program: finds the command, runs it, turns its Status into one line and an exit code
// (0 done, 1 failed, 2 the command line makes no sense; of `plan` see below).
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/command.h"
#include "apps/terminal.h"
#include "apps/version.h"

namespace tq {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Entry {
  const char* name;
  const char* summary;
  RegisterCommand add;
};

constexpr Entry kCommands[] = {
#define COMMAND(name, summary, Register) {name, summary, Register},
#include "apps/command_list.inc"
#undef COMMAND
};

struct Command {
  CLI::App* app;
  RunCommand run;
};

int UsageError(const CLI::App& app, const std::string& message) {
  std::string command = "turboquant";
  for (const CLI::App* parsed : app.get_subcommands()) command += " " + parsed->get_name();
  PrintError(fmt::format("{} (see {} --help)", message, command));
  return kUsage;
}

int Finish(const Status& status) {
  if (status.ok()) return 0;
  PrintError(status.message());
  return kFailed;
}

// `plan` answers with its exit code: 1 is "it does not fit, or files are missing", 2 is "no
// answer".
int FinishPlan(const Status& status) {
  const bool is_answer = status.code() == StatusCode::kOutOfMemory ||
                         status.code() == StatusCode::kNotFound || status.ok();
  return is_answer ? Finish(status) : (Finish(status), kUsage);
}

int Main(int argc, char** argv) {
  Interrupts interrupts;
  CLI::App app("Runs large language models from TurboQuant checkpoints.", "turboquant");
  bool version = false;
  bool json = false;
  app.add_flag("--version", version, "Print version, compiler and instruction sets");
  app.add_flag("--json", json, "With --version: print one JSON object");
  app.footer(
      "`turboquant COMMAND --help` shows the flags of a command.\n\nExamples:\n"
      "  turboquant convert --hf-path Qwen3-8B --mlx-path Qwen3-8B-3bit\n"
      "  turboquant generate --model Qwen3-8B-3bit --prompt \"Why is the sky blue?\"\n"
      "  turboquant --version --json\n");
  std::vector<Command> commands;
  for (const Entry& entry : kCommands) {
    CLI::App* sub = app.add_subcommand(entry.name, entry.summary);
    commands.push_back({sub, entry.add(*sub)});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);  // --help
    return 0;
  } catch (const CLI::ParseError& e) {
    return UsageError(app, e.what());
  }
  if (version) return Finish(PrintVersion(json));
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const Status status = command.run(interrupts);
    return command.app->get_name() == "plan" ? FinishPlan(status) : Finish(status);
  }
  return UsageError(app, "expected a command, found none");
}

}  // namespace
}  // namespace tq

int main(int argc, char** argv) {
  // What the standard library throws when memory ends, or a third party by surprise.
  try {
    return tq::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    tq::PrintError("out of memory: use a smaller model or context");
  } catch (const std::exception& e) {
    tq::PrintError(e.what());
  }
  return tq::kFailed;
}
