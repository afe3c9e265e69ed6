#include "apps/interrupts.h"

#include <utility>

#include <pthread.h>
#include <unistd.h>

namespace tq {

Interrupts::Interrupts() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  has_terminal_ = ::tcgetattr(STDIN_FILENO, &terminal_) == 0;
  thread_ = std::thread([this] { Run(); });
}

Interrupts::~Interrupts() {
  stop_ = true;
  ::pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void Interrupts::Run() {
  while (true) {
    int signal = 0;
    if (::sigwait(&signals_, &signal) != 0) continue;
    if (stop_) return;
    const std::lock_guard lock(mutex_);
    if (!handler_ || fired_) ExitNow(signal);
    fired_ = true;
    handler_();
  }
}

void Interrupts::ExitNow(int signal) const {
  if (has_terminal_) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_);
  ::_exit(128 + signal);
}

Interrupts::Scope::Scope(Interrupts& interrupts, std::function<void()> handler)
    : interrupts_(interrupts) {
  const std::lock_guard lock(interrupts_.mutex_);
  interrupts_.handler_ = std::move(handler);
  interrupts_.fired_ = false;
}

Interrupts::Scope::~Scope() {
  const std::lock_guard lock(interrupts_.mutex_);
  interrupts_.handler_ = nullptr;
}

}  // namespace tq
