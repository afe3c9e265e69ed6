// ReadAhead: asks the system for the pages of mapped files before they are touched, a bounded
// distance ahead of whoever reads them, so that the disk works while the processor does. Advice
// only: nothing fails, and memory that is no file is left alone.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace tq {

class ReadAhead {
 public:
  // ranges: in the order of use; they outlive the object. window: bytes ahead.
  explicit ReadAhead(std::vector<std::span<const std::byte>> ranges,
                     size_t window = size_t{256} << 20);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // So many more bytes were used. Any thread.
  void Used(size_t bytes);
  // Bytes that were asked for so far.
  size_t asked() const;

 private:
  void Run();
  // False: stopped while waiting.
  bool WaitForRoom(size_t bytes);

  const std::vector<std::span<const std::byte>> ranges_;
  const size_t window_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t used_ = 0;
  size_t asked_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace tq
