// What the program writes for people: errors in one line, numbers with units, a progress bar. Only
// a terminal gets colour (and not when NO_COLOR is set) or a progress bar.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tq {

struct Console {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool out_colour = false;
  bool err_colour = false;
  bool quiet = false;  // no progress, no statistics
};
Console MakeConsole(bool quiet);

// "error: ..." and "warning: ..." on stderr, always one line.
void PrintError(std::string_view message);
void PrintWarning(std::string_view message);
// Dimmed on a terminal.
void PrintNote(const Console& console, std::string_view line);

std::string HumanBytes(double bytes);  // "1.23 GB" (powers of 1000)
std::string HumanCount(double count);  // "12.3 M"

// One line on a terminal's stderr: share, throughput, time left. Erased at the end.
class ProgressBar {
 public:
  // human: how an amount of work per second is written.
  ProgressBar(const Console& console, std::string label, std::string (*human)(double),
              std::string unit);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Cheap to call often. Thread: one caller.
  void Update(int64_t done, int64_t total);
  void Erase();

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_;
  std::string label_;
  std::string (*human_)(double);
  std::string unit_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;  // the first moments say nothing about speed
  bool drawn_ = false;
};

}  // namespace tq
