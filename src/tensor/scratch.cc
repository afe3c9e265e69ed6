#include "tensor/scratch.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

namespace tq {

bool Scratch::AddChunk(size_t bytes) {
  Chunk chunk;
  chunk.size = bytes;
  chunk.memory.reset(new (std::nothrow) std::byte[bytes + kAlign]);
  if (chunk.memory == nullptr) return false;
  const auto address = reinterpret_cast<uintptr_t>(chunk.memory.get());
  chunk.begin = chunk.memory.get() + (kAlign - address % kAlign) % kAlign;
  chunks_.push_back(std::move(chunk));
  return true;
}

void* Scratch::AllocBytes(size_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size() && !AddChunk(std::max(bytes, size_t{1} << 20))) {
    throw std::bad_alloc();
  }
  void* out = chunks_[chunk_].begin + used_;
  used_ += bytes;
  if (chunk_ == 0) peak_ = std::max(peak_, used_);
  return out;
}

bool Scratch::Reserve(size_t bytes) {
  std::vector<Chunk> before = std::exchange(chunks_, {});
  if (!AddChunk(bytes)) {
    chunks_ = std::move(before);
    return false;
  }
  chunk_ = 0;
  used_ = 0;
  peak_ = 0;
  return true;
}

void Scratch::Reset() {
  if (chunks_.size() > 1) {
    const size_t total = capacity_bytes();
    chunks_.clear();
    if (!AddChunk(total)) throw std::bad_alloc();
    peak_ = 0;
  }
  chunk_ = 0;
  used_ = 0;
}

size_t Scratch::capacity_bytes() const {
  size_t total = 0;
  for (const Chunk& chunk : chunks_) total += chunk.size;
  return total;
}

}  // namespace tq
