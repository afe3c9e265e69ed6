#include "base/memory.h"

#include <algorithm>
#include <charconv>
#include <string>

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

}  // namespace

int64_t AvailableMemoryBytes() {
  const int64_t kib = NumberAfter("/proc/meminfo", "MemAvailable:");
  if (kib < 0) return 0;
  int64_t available = kib * 1024;
  const int64_t limit = NumberAfter("/sys/fs/cgroup/memory.max", "");  // "max": no number
  const int64_t used = NumberAfter("/sys/fs/cgroup/memory.current", "");
  // Pages of files that the group would give back first.
  const int64_t cached = NumberAfter("/sys/fs/cgroup/memory.stat", "inactive_file");
  if (limit >= 0 && used >= 0) {
    const int64_t left = limit - used + std::max<int64_t>(cached, 0);
    available = std::clamp<int64_t>(left, 0, available);
  }
  return available;
}

}  // namespace tq
