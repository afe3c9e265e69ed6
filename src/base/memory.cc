#include "base/memory.h"

#include <algorithm>
#include <charconv>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/file.h"

namespace tq {
namespace {

// The number that follows `key` in a small text file of the system; -1 when there is none.
int64_t NumberAfter(const char* path, std::string_view key) {
  const Result<std::string> text = ReadTextFile(path);
  if (!text.ok()) return -1;
  size_t at = key.empty() ? 0 : text->find(key);
  if (at == std::string::npos) return -1;
  at = text->find_first_of("0123456789", at + key.size());
  if (at == std::string::npos) return -1;
  int64_t value = -1;
  std::from_chars(text->data() + at, text->data() + text->size(), value);
  return value;
}

int64_t MemInfoBytes(const char* key) {
  const int64_t kib = NumberAfter("/proc/meminfo", key);
  return kib < 0 ? -1 : kib * 1024;
}

struct ControlGroup {
  const char* limit;
  const char* used;
  const char* details;
};
constexpr ControlGroup kControlGroups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat"}};

}  // namespace

SystemMemory ReadSystemMemory() {
  SystemMemory memory;
  memory.total = MemInfoBytes("MemTotal:");
  memory.available = MemInfoBytes("MemAvailable:");
  memory.swap_total = MemInfoBytes("SwapTotal:");
  memory.swap_free = MemInfoBytes("SwapFree:");
  if (memory.available < 0) return memory;
  for (const ControlGroup& group : kControlGroups) {
    const int64_t limit = NumberAfter(group.limit, "");  // "max": no number
    const int64_t used = NumberAfter(group.used, "");
    if (limit < 0 || used < 0) continue;
    // Pages of files that the group would give back first.
    const int64_t cached = NumberAfter(group.details, "inactive_file");
    if (limit < memory.total) memory.container_limit = limit;
    memory.available =
        std::clamp<int64_t>(limit - used + std::max<int64_t>(cached, 0), 0, memory.available);
    break;
  }
  return memory;
}

int64_t ResidentBytes() {
  const int64_t kib = NumberAfter("/proc/self/status", "VmRSS:");
  return kib < 0 ? 0 : kib * 1024;
}

void ReturnFreeMemory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

int64_t AvailableMemoryBytes() { return std::max<int64_t>(ReadSystemMemory().available, 0); }

}  // namespace tq
