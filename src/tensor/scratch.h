// Scratch: the arena of one step. Alloc is a pointer bump; Reset frees all. The first steps may
// grow it unless Reserve made it large enough, a steady state allocates nothing. Thread: the step's
// caller only (workers use what they are given).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace tq {

class Scratch {
 public:
  static constexpr size_t kAlign = 64;

  template <typename T>
  T* Alloc(size_t n) {
    return static_cast<T*>(AllocBytes(n * sizeof(T)));
  }
  // Everything allocated after Mark() is freed by Release(mark).
  struct Mark {
    size_t chunk = 0;
    size_t used = 0;
  };
  Mark GetMark() const { return {chunk_, used_}; }
  void Release(Mark mark) {
    chunk_ = mark.chunk;
    used_ = mark.used;
  }
  // Frees all, and merges the chunks into one, so that the next step bumps through one block.
  void Reset();
  // One block of that size, in place of what there is. Requires: nothing is allocated. Errors:
  // false (no memory), and nothing has changed.
  bool Reserve(size_t bytes);
  size_t capacity_bytes() const;
  // The most that was allocated at a time of the first block: all of it after Reset or Reserve, as
  // long as that block was enough.
  size_t peak_bytes() const { return peak_; }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::byte* begin = nullptr;  // aligned
    size_t size = 0;
  };
  void* AllocBytes(size_t bytes);
  bool AddChunk(size_t bytes);
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;
  size_t used_ = 0;
  size_t peak_ = 0;
};

// Releases what was allocated during its life.
class ScratchScope {
 public:
  explicit ScratchScope(Scratch& scratch) : scratch_(scratch), mark_(scratch.GetMark()) {}
  ~ScratchScope() { scratch_.Release(mark_); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  Scratch& scratch_;
  Scratch::Mark mark_;
};

}  // namespace tq
