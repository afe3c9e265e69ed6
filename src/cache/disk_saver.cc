#include "cache/disk_saver.h"

#include <cstring>
#include <utility>

namespace tq {

const DiskKey& DiskSaver::KeyOf(int32_t node) const {
  return PrefixTree::IsRoot(node) ? disk_.root() : tree_.node(node).disk.key;
}

void DiskSaver::SavePath(int32_t node, int64_t num_tokens, bool with_state) {
  if (num_tokens < disk_.options().min_tokens || !disk_.writable()) return;
  path_.clear();
  for (int32_t at = node; !PrefixTree::IsRoot(at); at = tree_.node(at).parent) path_.push_back(at);
  for (size_t i = path_.size(); i-- > 0;) {
    const int32_t name = path_[i];
    PrefixNode& page = tree_.node(name);
    if (!page.disk.has_key) {
      const std::span<const int32_t> ids(page.ids, static_cast<size_t>(page.num_tokens));
      page.disk.key = DiskPageKey(KeyOf(page.parent), {0, ids, tree_.ExtrasOf(name)});
      page.disk.has_key = true;
    }
    const bool state = with_state && name == node && page.checkpoint >= 0 &&
                       !disk_.Has(page.disk.key, DiskKind::kState);
    page.disk.wants_state |= state;
    if (page.disk.waiting || (!state && disk_.Has(page.disk.key, DiskKind::kPage))) continue;
    page.disk.waiting = true;
    waiting_.push_back({name, page.disk.key});
  }
}

void DiskSaver::SaveState(int32_t node, int64_t num_tokens, int32_t slot) {
  SavePath(node, num_tokens, /*with_state=*/true);
  const PrefixNode& page = tree_.node(node);
  if (num_tokens < disk_.options().min_tokens || page.disk.wants_state || !page.disk.has_key)
    return;
  if (!disk_.writable() || disk_.Has(page.disk.key, DiskKind::kState)) return;
  std::unique_ptr<DiskWrite> write = Describe(node, DiskKind::kState);
  if (write != nullptr) Copy(std::move(write), kv_.SlotParts(slot));
}

std::unique_ptr<DiskWrite> DiskSaver::Describe(int32_t node, DiskKind kind) {
  std::unique_ptr<DiskWrite> write = disk_.TakeWrite(kind);
  if (write == nullptr) return write;
  const PrefixNode& page = tree_.node(node);
  const std::span<const TokenExtra> extras = tree_.ExtrasOf(node);
  write->key = page.disk.key;
  write->record.parent = KeyOf(page.parent);
  write->record.ids.assign(page.ids, page.ids + page.num_tokens);
  write->record.extras.assign(extras.begin(), extras.end());
  return write;
}

void DiskSaver::Copy(std::unique_ptr<DiskWrite> write,
                     const std::vector<std::span<std::byte>>& parts) {
  std::byte* to = write->payload.data();
  for (const std::span<std::byte> part : parts) {
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  write->size = static_cast<size_t>(to - write->payload.data());
  disk_.Post(std::move(write));
}

bool DiskSaver::PostNode(int32_t name) {
  PrefixNode& node = tree_.node(name);
  if (!disk_.Has(node.disk.key, DiskKind::kPage)) {
    std::unique_ptr<DiskWrite> write = Describe(name, DiskKind::kPage);
    if (write == nullptr) return false;
    Copy(std::move(write), kv_.PageParts(name));
  }
  const bool state =
      node.disk.wants_state && node.checkpoint >= 0 && !disk_.Has(node.disk.key, DiskKind::kState);
  if (state) {
    std::unique_ptr<DiskWrite> write = Describe(name, DiskKind::kState);
    if (write == nullptr) return false;
    Copy(std::move(write), kv_.SlotParts(node.checkpoint));
  }
  node.disk.waiting = false;
  node.disk.wants_state = false;
  return true;
}

void DiskSaver::Pump() {
  if (waiting_.empty()) return;
  const bool writable = disk_.writable();
  while (!waiting_.empty()) {
    const Waiting& next = waiting_.front();
    PrefixNode& node = tree_.node(next.node);
    const bool is_it = node.disk.waiting && node.disk.key == next.key;
    if (is_it && !writable) {
      node.disk.waiting = false;
      node.disk.wants_state = false;
    } else if (is_it && !PostNode(next.node)) {
      return;
    }
    waiting_.pop_front();
  }
}

void DiskSaver::Flush() {
  while (true) {
    Pump();
    if (waiting_.empty()) return;
    disk_.WaitForWrite();
  }
}

}  // namespace tq
