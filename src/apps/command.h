// A command of the program: it declares its flags, and runs after they were parsed.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "apps/interrupts.h"
#include "base/status.h"

namespace tq {

// Prints its result; an error is printed by main.
using RunCommand = std::function<Status(Interrupts& interrupts)>;
using RegisterCommand = RunCommand (*)(CLI::App& app);

#define COMMAND(name, summary, Register) RunCommand Register(CLI::App& app);
#include "apps/command_list.inc"
#undef COMMAND

}  // namespace tq
