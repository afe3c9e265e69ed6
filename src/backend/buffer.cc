#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "backend/backend.h"

namespace tq {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Result<Buffer> Buffer::Allocate(size_t bytes, bool huge_pages) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const auto refused = [bytes](const char* why) {
    return OutOfMemory("expected " + std::to_string(bytes) +
                       " bytes of memory, found that the system gives no such block (" + why +
                       "): use a smaller model, cache or context");
  };
  if (bytes > (size_t{1} << 47)) return refused("beyond the address space");
  const size_t mapped = RoundUp(bytes, kPage);
  // The spare huge page is for alignment; what is not needed of it goes back at once.
  const size_t slack = huge_pages ? kHugePage : 0;
  void* memory = ::mmap(nullptr, mapped + slack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return refused(std::strerror(errno));
  auto* begin = static_cast<std::byte*>(memory);
  if (huge_pages) {
    const size_t address = reinterpret_cast<size_t>(begin);
    const size_t head = RoundUp(address, kHugePage) - address;
    if (head > 0) ::munmap(begin, head);
    begin += head;
    if (slack > head) ::munmap(begin + mapped, slack - head);
    // Only advice: without it everything works, a quarter slower.
    ::madvise(begin, mapped, MADV_HUGEPAGE);
  }
  buffer.data_ = begin;
  buffer.size_ = bytes;
  return buffer;
}

Buffer::~Buffer() {
  if (data_ != nullptr) ::munmap(data_, RoundUp(size_, kPage));
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tq
