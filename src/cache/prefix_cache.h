// PrefixCache: lets sequences share what they computed. Whole pages go into a tree (prefix_tree.h)
// as soon as they are full, also those of running sequences, and stay when their sequence ends;
// pages are read by all and written by nobody. The last, partly filled page of an ended sequence is
// kept too and copied by whoever goes on from it. Where layers are recurrent, a prefix can only be
// taken up where a checkpoint of the state was kept. Unused pages are evicted, least recently used
// first, when pages are needed. docs/engine.md has the invariants. Thread: engine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "cache/prefix_key.h"
#include "cache/prefix_tree.h"

namespace tq {

// What one running sequence holds. The pages from length / kPageTokens on are its own.
struct SequenceCache {
  std::vector<int32_t> pages;
  int32_t state_slot = -1;
  int64_t length = 0;      // tokens that the pages and the state cover
  int32_t node = -1;       // node of the last page that is in the tree; the root before the first
  int64_t num_shared = 0;  // first pages that are in the tree
  // Pages and state from num_shared on are being filled: their content is undefined.
  bool loading = false;
  // The tree knew the tokens up to here, but had no checkpoint: the next one will ask for it too.
  int64_t branch = 0;
};

// How a sequence can go on from the tree.
struct PrefixMatch {
  int32_t node = -1;
  int64_t num_pages = 0;    // whole pages from the beginning
  int32_t tail = -1;        // a page to copy after them; -1: none
  int64_t tail_tokens = 0;  // of it
  int64_t known_tokens = 0;
  int64_t idle_pages = 0;  // pages that count as available() now and no longer once adopted
  int64_t length() const { return num_pages * kPageTokens + tail_tokens; }
};

struct PrefixCacheOptions {
  bool enabled = true;
  int64_t max_checkpoints = 0;  // slots of the cache beyond those of running sequences
  PageHash hash = HashPage;
};

class PrefixCache {
 public:
  // A shorter part of a page is not worth a copy (without recurrent layers).
  static constexpr int64_t kMinTailTokens = 8;

  // `cache` must outlive it. Errors: kOutOfMemory.
  static Result<PrefixCache> Create(KvCache& cache, const PrefixCacheOptions& options);

  // False: nothing is shared, every call does only what it must.
  bool enabled() const { return options_.enabled; }
  // Free pages and those that only the tree holds.
  int64_t available() const { return cache_->free_pages() + unused_.size(); }
  // Evicts as needed. False (and no change) when there are not enough. first: as KvCache::Allocate.
  bool Allocate(int64_t count, std::vector<int32_t>& pages, int64_t first = -1);

  // An empty sequence. fingerprint: of all that changes a page's content beyond the tokens.
  void Begin(SequenceCache& sequence, std::string_view fingerprint);
  // The longest way on from sequence.length that leaves at least one of the tokens to compute.
  // Not found (length() <= sequence.length) unless the sequence ends with a page of the tree.
  // Without a tail: whole pages only.
  PrefixMatch Match(const SequenceCache& sequence, const PrefixTokens& tokens,
                    bool with_tail = true) const;
  // Requires: match is Match's answer for now; with a tail, the sequence has a page after
  // match.num_pages or one is available().
  void Adopt(SequenceCache& sequence, const PrefixMatch& match);
  // Puts the full pages into the tree. A page that the tree has already replaces the sequence's.
  void Publish(SequenceCache& sequence, const PrefixTokens& tokens);
  // Keeps the state after sequence.length tokens, if it may. Requires: published, whole pages.
  void SaveCheckpoint(const SequenceCache& sequence);
  // Shortens the sequence: rejected drafts. state: a slot with the state after `length` tokens;
  // needed where layers are recurrent and 0 < length < sequence.length. False (and no change) when
  // a page that others read must be copied and none is available().
  bool Truncate(SequenceCache& sequence, int64_t length, int32_t state);
  // Ends the sequence: all that it computed stays in the tree as far as it can be of use.
  // Returns the last node of it, which may be a root.
  int32_t Release(SequenceCache& sequence, const PrefixTokens& tokens);
  PrefixTree& tree() { return tree_; }

  int64_t num_pages() const { return tree_.num_nodes(); }  // in the tree
  int64_t num_checkpoints() const { return checkpoints_.size(); }
  int64_t evicted_pages() const { return evicted_pages_; }

 private:
  PrefixCache(KvCache& cache, const PrefixCacheOptions& options, PrefixTree tree)
      : cache_(&cache), options_(options), tree_(std::move(tree)) {}
  // The tail to copy after `length` tokens, if one goes on further than kept in `match`.
  void FindTail(int32_t parent, int64_t length, const PageTokens& rest, PrefixMatch& match) const;
  void Lock(int32_t page);
  void Unlock(int32_t page);
  void EvictOldest();
  void Discard(int32_t page);
  // A slot for a checkpoint, maybe the least recently used one's; -1 when there can be none.
  int32_t TakeCheckpointSlot();
  void DropCheckpoint(int32_t page);
  // The tail's node, or -1.
  int32_t PublishTail(const SequenceCache& sequence, const PrefixTokens& tokens);
  void DropCoveredSiblings(int32_t page, const PageTokens& tokens);
  void UseCheckpoint(int32_t page, int32_t slot);

  KvCache* cache_;
  PrefixCacheOptions options_;
  PrefixTree tree_;
  // Nodes that no sequence has locked. An ancestor is locked or newer, so the oldest is a leaf.
  LruList<PrefixNode, &PrefixNode::use> unused_;
  LruList<PrefixNode, &PrefixNode::checkpoint_use> checkpoints_;
  int64_t evicted_pages_ = 0;
};

}  // namespace tq
