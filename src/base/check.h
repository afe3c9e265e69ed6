// TQ_CHECK: an invariant of our own code. No byte of a file or request may reach a failing one.
#pragma once

namespace tq {
[[noreturn]] void CheckFailed(const char* file, int line, const char* what);
}  // namespace tq

#define TQ_CHECK(cond)                                          \
  do {                                                          \
    if (!(cond)) ::tq::CheckFailed(__FILE__, __LINE__, #cond);  \
  } while (0)

#ifdef NDEBUG
#define TQ_DCHECK(cond) \
  do {                  \
  } while (0)
#else
#define TQ_DCHECK(cond) TQ_CHECK(cond)
#endif
