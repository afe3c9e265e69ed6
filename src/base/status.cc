#include "base/status.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tq {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kInvalidArgument: return "invalid argument";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kUnsupported: return "unsupported";
    case StatusCode::kCorrupt: return "corrupt";
    case StatusCode::kIo: return "input/output";
    case StatusCode::kOutOfMemory: return "out of memory";
    case StatusCode::kBusy: return "busy";
    case StatusCode::kCancelled: return "cancelled";
    case StatusCode::kDeadline: return "deadline";
    case StatusCode::kInternal: return "internal";
  }
  return "unknown";
}

void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, what);
  std::abort();
}

}  // namespace tq
