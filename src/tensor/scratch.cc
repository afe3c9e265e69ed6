#include "tensor/scratch.h"

#include <algorithm>
#include <cstdint>

namespace tq {

void Scratch::AddChunk(size_t bytes) {
  Chunk chunk;
  chunk.size = bytes;
  chunk.memory.reset(new std::byte[bytes + kAlign]);
  const auto address = reinterpret_cast<uintptr_t>(chunk.memory.get());
  chunk.begin = chunk.memory.get() + (kAlign - address % kAlign) % kAlign;
  chunks_.push_back(std::move(chunk));
}

void* Scratch::AllocBytes(size_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) AddChunk(std::max(bytes, size_t{1} << 20));
  void* out = chunks_[chunk_].begin + used_;
  used_ += bytes;
  return out;
}

void Scratch::Reset() {
  if (chunks_.size() > 1) {
    const size_t total = capacity_bytes();
    chunks_.clear();
    AddChunk(total);
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
