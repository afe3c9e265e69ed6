#include "base/read_ahead.h"

#include <algorithm>
#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace tq {
namespace {

// One request: long enough for the disk, short enough to stop soon.
constexpr size_t kPiece = size_t{8} << 20;

void WillNeed(std::span<const std::byte> range) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(range.data()) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(range.data() + range.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

}  // namespace

ReadAhead::ReadAhead(std::vector<std::span<const std::byte>> ranges, size_t window)
    : ranges_(std::move(ranges)), window_(window), thread_([this] { Run(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReadAhead::Used(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    used_ += bytes;
  }
  changed_.notify_all();
}

size_t ReadAhead::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

bool ReadAhead::WaitForRoom(size_t bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_ || asked_ + bytes <= used_ + window_; });
  asked_ += bytes;
  return !stop_;
}

void ReadAhead::Run() {
  for (const std::span<const std::byte> range : ranges_) {
    for (size_t at = 0; at < range.size(); at += kPiece) {
      const auto piece = range.subspan(at, std::min(kPiece, range.size() - at));
      if (!WaitForRoom(piece.size())) return;
      WillNeed(piece);
    }
  }
}

}  // namespace tq
