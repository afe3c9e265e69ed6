// Interrupts: Ctrl-C and SIGTERM as calls on a thread of their own, so that a handler may take
// locks. Without a handler a signal ends the process at once; with one, the second signal does.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

#include <termios.h>

namespace tq {

class Interrupts {
 public:
  // Requires: no other thread runs yet (they inherit the blocked signals).
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Calls `handler` for the first signal during its life. One at a time.
  class Scope {
   public:
    Scope(Interrupts& interrupts, std::function<void()> handler);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interrupts& interrupts_;
  };

 private:
  void Run();
  // Exit status 128 + signal, with the terminal as it was found.
  [[noreturn]] void ExitNow(int signal) const;

  sigset_t signals_;
  bool has_terminal_ = false;
  termios terminal_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards handler_ and fired_
  std::function<void()> handler_;
  bool fired_ = false;
  std::thread thread_;
};

}  // namespace tq
