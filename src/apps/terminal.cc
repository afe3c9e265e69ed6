#include "apps/terminal.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace tq {
namespace {

bool MayColour(bool is_terminal) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain = (no_colour != nullptr && *no_colour != '\0') ||
                     (term != nullptr && std::string_view(term) == "dumb");
  return is_terminal && !plain;
}

std::string OneLine(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return line;
}

void PrintLabelled(std::string_view label, const char* colour, std::string_view message) {
  const bool colours = MayColour(::isatty(STDERR_FILENO) != 0);
  fmt::print(stderr, "{}{}:{} {}\n", colours ? colour : "", label, colours ? "\x1b[0m" : "",
             OneLine(message));
}

// Three digits and a prefix of powers of 1000.
std::string Human(double value, std::string_view unit) {
  constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t i = 0;
  while (value >= 999.5 && i + 1 < kPrefixes.size()) {
    value /= 1000;
    ++i;
  }
  const int decimals = i == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}{}", value, decimals, kPrefixes[i], unit);
}

std::string TimeLeft(double seconds) {
  const auto s = static_cast<int64_t>(std::min(seconds, 359999.0));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

Console MakeConsole(bool quiet) {
  Console console;
  console.out_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  console.err_is_terminal = ::isatty(STDERR_FILENO) != 0;
  console.out_colour = MayColour(console.out_is_terminal);
  console.err_colour = MayColour(console.err_is_terminal);
  console.quiet = quiet;
  return console;
}

void PrintError(std::string_view message) { PrintLabelled("error", "\x1b[31m", message); }
void PrintWarning(std::string_view message) { PrintLabelled("warning", "\x1b[33m", message); }

void PrintNote(const Console& console, std::string_view line) {
  fmt::print(stderr, "{}{}{}\n", console.err_colour ? "\x1b[2m" : "", line,
             console.err_colour ? "\x1b[0m" : "");
}

std::string HumanBytes(double bytes) { return Human(bytes, "B"); }
std::string HumanCount(double count) {
  std::string text = Human(count, "");
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

ProgressBar::ProgressBar(const Console& console, std::string label, std::string (*human)(double),
                         std::string unit)
    : shown_(console.err_is_terminal && !console.quiet),
      label_(std::move(label)),
      human_(human),
      unit_(std::move(unit)) {}

ProgressBar::~ProgressBar() { Erase(); }

void ProgressBar::Update(int64_t done, int64_t total) {
  constexpr int kWidth = 30;
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const Clock::time_point now = Clock::now();
  if (!shown_ || total <= 0 || now - last_ < kInterval) return;
  last_ = now;
  drawn_ = true;
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-9);
  const auto full = static_cast<int>(share * kWidth);
  const std::string bar = std::string(static_cast<size_t>(full), '=') +
                          std::string(static_cast<size_t>(kWidth - full), ' ');
  const std::string left =
      done > 0 ? TimeLeft(static_cast<double>(total - done) / rate) : std::string("?");
  fmt::print(stderr, "\r\x1b[K{} [{}] {:3.0f} %  {}{}/s  {} left", label_, bar, share * 100,
             human_(rate), unit_, left);
  std::fflush(stderr);
}

void ProgressBar::Erase() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace tq
