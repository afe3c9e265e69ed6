// Whether the memory that a process of this build takes is what the program asks for: a sanitizer
// takes some for itself and gives nothing back, so that measuring or limiting it says nothing.
#pragma once

namespace tq::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryIsOurs = false;
#else
inline constexpr bool kMemoryIsOurs = true;
#endif

}  // namespace tq::test
