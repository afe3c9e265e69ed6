#include "eval/disk_speed.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tq {

double MeasureDiskSpeed(const std::string& file) {
  constexpr int64_t kPiece = int64_t{4} << 20;
  constexpr int64_t kPieces = 16;
  const int handle = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return 0;
  struct stat info {};
  int64_t total = 0;
  double seconds = 0;
  if (::fstat(handle, &info) == 0 && info.st_size >= kPiece * kPieces) {
    std::vector<char> buffer(kPiece);
    const int64_t stride = info.st_size / kPieces;
    for (int64_t i = 0; i < kPieces; ++i) {
      const off_t at = i * stride / kPiece * kPiece;
      ::posix_fadvise(handle, at, kPiece, POSIX_FADV_DONTNEED);
      const auto start = std::chrono::steady_clock::now();
      const ssize_t got = ::pread(handle, buffer.data(), kPiece, at);
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      total += std::max<ssize_t>(got, 0);
    }
  }
  ::close(handle);
  return seconds > 0 ? static_cast<double>(total) / seconds : 0;
}

}  // namespace tq
