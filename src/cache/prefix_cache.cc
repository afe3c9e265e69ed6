#include "cache/prefix_cache.h"

#include <algorithm>

#include "base/check.h"

namespace tq {
namespace {

bool IsTail(const PrefixNode& node) { return node.num_tokens < kPageTokens; }

}  // namespace

Result<PrefixCache> PrefixCache::Create(KvCache& cache, const PrefixCacheOptions& options) {
  TQ_ASSIGN_OR_RETURN(PrefixTree tree, PrefixTree::Create(cache.num_pages(), options.hash));
  PrefixCacheOptions used = options;
  // Without checkpoints of the state nothing could ever be taken up.
  if (cache.has_state() && options.max_checkpoints == 0) used.enabled = false;
  return PrefixCache(cache, used, std::move(tree));
}

// There are exact pages for all running sequences (Scheduler::Create): what is missing, the tree
// has, and the oldest sequences' pages go from the last to the first.
bool PrefixCache::Allocate(int64_t count, std::vector<int32_t>& pages, int64_t first) {
  if (count > available()) return false;
  if (first < 0) first = static_cast<int64_t>(pages.size());
  while (cache_->free_pages() < count) EvictOldest();
  while (!cache_->HasExact(count, first) && unused_.size() > 0) EvictOldest();
  return cache_->Allocate(count, pages, first);
}

void PrefixCache::Begin(SequenceCache& sequence, std::string_view fingerprint) {
  sequence.length = 0;
  sequence.num_shared = 0;
  sequence.branch = 0;
  sequence.node = tree_.Root(fingerprint);
}

PrefixMatch PrefixCache::Match(const SequenceCache& sequence, const PrefixTokens& tokens,
                               bool with_tail) const {
  PrefixMatch match;
  match.node = sequence.node;
  match.num_pages = sequence.num_shared;
  if (!options_.enabled || sequence.length != sequence.num_shared * kPageTokens) return match;
  const bool has_state = cache_->has_state();
  const auto limit = static_cast<int64_t>(tokens.ids.size()) - 1;
  int32_t known = sequence.node;
  int64_t length = sequence.length;
  const auto find_tail = [&](int32_t parent, int64_t from) {
    if (!with_tail || from >= limit) return;
    const int64_t count = std::min<int64_t>(limit - from, kPageTokens);
    FindTail(parent, from, PageOf(tokens, from, count), match);
  };
  while (true) {
    // With recurrent layers a tail counts only as a whole, so one may hang on any node of the way.
    if (has_state) find_tail(known, length);
    if (length + kPageTokens > limit) break;
    const int32_t child = tree_.Find(known, PageOf(tokens, length, kPageTokens));
    if (child < 0) break;
    known = child;
    length += kPageTokens;
    if (has_state && tree_.node(known).checkpoint < 0) continue;
    if (CutsExtra(tokens.extras, length)) continue;
    match.node = known;
    match.num_pages = length / kPageTokens;
    match.tail = -1;
    match.tail_tokens = 0;
  }
  if (!has_state) {
    find_tail(known, length);
    // Else up to the begin of the extra that the last known page cuts.
    if (match.tail < 0) find_tail(match.node, match.num_pages * kPageTokens);
  }
  match.known_tokens = length;
  for (int32_t page = match.node; page != sequence.node; page = tree_.node(page).parent) {
    if (tree_.node(page).locks == 0) ++match.idle_pages;
  }
  if (match.tail >= 0 && tree_.node(match.tail).locks == 0) ++match.idle_pages;
  return match;
}

void PrefixCache::FindTail(int32_t parent, int64_t length, const PageTokens& rest,
                           PrefixMatch& match) const {
  const bool has_state = cache_->has_state();
  int64_t most = has_state ? 0 : kMinTailTokens - 1;
  for (int32_t page = tree_.FirstChild(parent); page >= 0; page = tree_.node(page).next_sibling) {
    const PrefixNode& node = tree_.node(page);
    if (has_state && (!IsTail(node) || node.checkpoint < 0)) continue;
    const int64_t common = tree_.CommonTokens(page, rest);
    if (common <= most || (has_state && common < node.num_tokens)) continue;
    most = common;
    match.node = parent;
    match.num_pages = length / kPageTokens;
    match.tail = page;
    match.tail_tokens = common;
  }
}

void PrefixCache::Lock(int32_t page) {
  if (tree_.node(page).locks++ == 0) unused_.Remove(tree_, page);
}

void PrefixCache::Unlock(int32_t page) {
  TQ_DCHECK(tree_.node(page).locks > 0);
  if (--tree_.node(page).locks == 0) unused_.PushNewest(tree_, page);
}

void PrefixCache::Adopt(SequenceCache& sequence, const PrefixMatch& match) {
  std::vector<int32_t>& pages = sequence.pages;
  const auto num_pages = static_cast<size_t>(match.num_pages);
  if (pages.size() < num_pages) pages.resize(num_pages, -1);
  int32_t page = match.node;
  for (size_t i = num_pages; i-- > static_cast<size_t>(sequence.num_shared);) {
    Lock(page);
    cache_->Hold(page);
    if (pages[i] >= 0) cache_->Drop(pages[i]);
    pages[i] = page;
    page = tree_.node(page).parent;
  }
  TQ_CHECK(page == sequence.node);
  int32_t checkpoint = match.num_pages > sequence.num_shared ? match.node : -1;
  sequence.node = match.node;
  sequence.num_shared = match.num_pages;
  if (match.tail >= 0) {
    checkpoint = match.tail;
    Lock(match.tail);
    if (pages.size() == num_pages) TQ_CHECK(Allocate(1, pages));
    cache_->CopyPage(match.tail, pages[num_pages]);
    Unlock(match.tail);
  }
  sequence.length = std::max(sequence.length, match.length());
  if (match.known_tokens > sequence.length) sequence.branch = match.known_tokens;
  if (checkpoint >= 0 && cache_->has_state()) {
    cache_->CopySlot(tree_.node(checkpoint).checkpoint, sequence.state_slot);
    checkpoints_.Remove(tree_, checkpoint);
    checkpoints_.PushNewest(tree_, checkpoint);
  }
}

void PrefixCache::Publish(SequenceCache& sequence, const PrefixTokens& tokens) {
  if (!options_.enabled) return;
  while ((sequence.num_shared + 1) * kPageTokens <= sequence.length) {
    int32_t& own = sequence.pages[static_cast<size_t>(sequence.num_shared)];
    const PageTokens page = PageOf(tokens, sequence.num_shared * kPageTokens, kPageTokens);
    const int32_t found = tree_.Find(sequence.node, page);
    if (found < 0) {
      tree_.Insert(own, sequence.node, page);
      tree_.node(own).locks = 1;
      cache_->Hold(own);
      DropCoveredSiblings(own, page);
    } else {
      Lock(found);
      cache_->Hold(found);
      cache_->Drop(own);
      own = found;
    }
    sequence.node = own;
    ++sequence.num_shared;
  }
}

void PrefixCache::SaveCheckpoint(const SequenceCache& sequence) {
  if (!options_.enabled || !cache_->has_state() || sequence.num_shared == 0) return;
  TQ_CHECK(sequence.length == sequence.num_shared * kPageTokens);
  const int32_t page = sequence.node;
  if (tree_.node(page).checkpoint >= 0) {
    checkpoints_.Remove(tree_, page);
    checkpoints_.PushNewest(tree_, page);
    return;
  }
  const int32_t slot = TakeCheckpointSlot();
  if (slot < 0) return;
  cache_->CopySlot(sequence.state_slot, slot);
  UseCheckpoint(page, slot);
}

void PrefixCache::UseCheckpoint(int32_t page, int32_t slot) {
  tree_.node(page).checkpoint = slot;
  checkpoints_.PushNewest(tree_, page);
}

int32_t PrefixCache::TakeCheckpointSlot() {
  if (options_.max_checkpoints == 0) return -1;
  if (checkpoints_.size() >= options_.max_checkpoints) DropCheckpoint(checkpoints_.oldest());
  return cache_->AllocateSlot();
}

void PrefixCache::DropCheckpoint(int32_t page) {
  PrefixNode& node = tree_.node(page);
  cache_->FreeSlot(node.checkpoint);
  node.checkpoint = -1;
  checkpoints_.Remove(tree_, page);
  // A tail without its state can never be taken up.
  if (IsTail(node) && node.locks == 0) Discard(page);
}

void PrefixCache::EvictOldest() {
  ++evicted_pages_;
  Discard(unused_.oldest());
}

void PrefixCache::Discard(int32_t page) {
  unused_.Remove(tree_, page);
  if (tree_.node(page).checkpoint >= 0) {
    cache_->FreeSlot(tree_.node(page).checkpoint);
    checkpoints_.Remove(tree_, page);
  }
  tree_.Remove(page);
  cache_->Drop(page);
}

// Tails whose tokens the new page begins with: of no more use, unless a state hangs on them.
void PrefixCache::DropCoveredSiblings(int32_t page, const PageTokens& tokens) {
  int32_t next = tree_.node(page).next_sibling;
  while (next >= 0) {
    const int32_t sibling = next;
    const PrefixNode& node = tree_.node(sibling);
    next = node.next_sibling;
    if (!IsTail(node) || node.checkpoint >= 0 || node.locks > 0) continue;
    if (tree_.CommonTokens(sibling, tokens) == node.num_tokens) Discard(sibling);
  }
}

bool PrefixCache::Truncate(SequenceCache& sequence, int64_t length, int32_t state) {
  TQ_CHECK(length >= 0 && length <= sequence.length);
  if (length == sequence.length) return true;
  const int64_t num_pages = KvCache::PagesFor(length);
  const bool cuts_page = length % kPageTokens != 0;
  std::vector<int32_t> own;
  if (cuts_page && cache_->holders(sequence.pages[static_cast<size_t>(num_pages - 1)]) > 1) {
    if (!Allocate(1, own, num_pages - 1)) return false;
    cache_->CopyPage(sequence.pages[static_cast<size_t>(num_pages - 1)], own[0]);
  }
  for (; sequence.num_shared * kPageTokens > length; --sequence.num_shared) {
    const int32_t page = sequence.node;
    sequence.node = tree_.node(page).parent;
    Unlock(page);
  }
  while (static_cast<int64_t>(sequence.pages.size()) > num_pages) {
    cache_->Drop(sequence.pages.back());
    sequence.pages.pop_back();
  }
  if (!own.empty()) {
    cache_->Drop(sequence.pages.back());
    sequence.pages.back() = own[0];
  }
  if (cache_->has_state() && length > 0) cache_->CopySlot(state, sequence.state_slot);
  sequence.length = length;
  return true;
}

// The last page, partly filled: for the next turn of the same conversation.
int32_t PrefixCache::PublishTail(const SequenceCache& sequence, const PrefixTokens& tokens) {
  const int64_t begin = sequence.num_shared * kPageTokens;
  const int64_t count = sequence.length - begin;
  const PageTokens tail = PageOf(tokens, begin, count);
  if (CutsExtra(tokens.extras, sequence.length)) return -1;
  int32_t slot = -1;
  if (cache_->has_state()) {
    if (const int32_t found = tree_.Find(sequence.node, tail); found >= 0) return found;
    slot = TakeCheckpointSlot();
    if (slot < 0) return -1;
    cache_->CopySlot(sequence.state_slot, slot);
  } else {
    PrefixMatch covered;
    FindTail(sequence.node, begin, tail, covered);
    if (count < kMinTailTokens || covered.tail_tokens == count) return -1;
  }
  const int32_t page = sequence.pages[static_cast<size_t>(sequence.num_shared)];
  tree_.Insert(page, sequence.node, tail);
  cache_->Hold(page);
  unused_.PushNewest(tree_, page);
  if (slot >= 0) UseCheckpoint(page, slot);
  DropCoveredSiblings(page, tail);
  return page;
}

int32_t PrefixCache::Release(SequenceCache& sequence, const PrefixTokens& tokens) {
  int32_t last = sequence.node;
  if (options_.enabled) {
    if (!sequence.loading) {
      Publish(sequence, tokens);
      last = sequence.node;
      if (sequence.length > sequence.num_shared * kPageTokens) {
        const int32_t tail = PublishTail(sequence, tokens);
        if (tail >= 0) last = tail;
      } else {
        SaveCheckpoint(sequence);
      }
    }
    // The deepest first, so that an ancestor is newer.
    while (!PrefixTree::IsRoot(sequence.node)) {
      const int32_t page = sequence.node;
      sequence.node = tree_.node(page).parent;
      Unlock(page);
    }
  }
  cache_->Free(sequence.pages);
  sequence.pages.clear();
  if (sequence.state_slot >= 0) cache_->FreeSlot(sequence.state_slot);
  sequence.state_slot = -1;
  sequence.length = 0;
  sequence.num_shared = 0;
  sequence.loading = false;
  return last;
}

}  // namespace tq
