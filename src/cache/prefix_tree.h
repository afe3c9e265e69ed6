// PrefixTree: which page holds which tokens after which others. A node is a page: its name is the
// page's id, its key the page's tokens, kept and compared on every look-up; the hash only finds
// candidates. A root stands for one fingerprint of everything else that a page's content depends
// on. Policy (who uses a node, what is thrown away) is prefix_cache.h's. Thread: engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "cache/disk_record.h"
#include "cache/lru_list.h"
#include "cache/prefix_key.h"

namespace tq {

using PageHash = uint64_t (*)(int32_t parent, const PageTokens& page);

// What the disk cache has to know of a node (disk_saver.h).
struct DiskMark {
  DiskKey key;
  bool has_key;
  bool waiting;      // to be saved
  bool wants_state;  // together with its checkpoint
};

// Plain data, so that the memory of unused nodes is never touched.
struct PrefixNode {
  int32_t parent;       // a page; a root is negative
  int32_t first_child;  // -1: none; likewise below
  int32_t next_sibling;
  int32_t previous_sibling;
  int32_t next_in_bucket;
  int32_t num_tokens;  // kPageTokens; fewer in the last page of an ended sequence, a leaf
  int32_t locks;       // running sequences whose pages include this one
  int32_t checkpoint;  // slot with the state after this node's tokens; -1: none
  LruLinks use;
  LruLinks checkpoint_use;
  uint64_t hash;
  DiskMark disk;
  int32_t ids[kPageTokens];
};

class PrefixTree {
 public:
  // Errors: kOutOfMemory.
  static Result<PrefixTree> Create(int64_t num_pages, PageHash hash);

  // The root of this fingerprint, made on first use: a negative number.
  int32_t Root(std::string_view fingerprint);
  PrefixNode& node(int32_t page) { return nodes()[page]; }
  const PrefixNode& node(int32_t page) const { return nodes()[page]; }
  int64_t num_nodes() const { return num_nodes_; }
  static bool IsRoot(int32_t name) { return name < 0; }

  // The child that holds exactly these tokens, or -1.
  int32_t Find(int32_t parent, const PageTokens& page) const;
  // How many of the first tokens of `page` this node holds too; never a part of an extra.
  int64_t CommonTokens(int32_t node, const PageTokens& page) const;
  int32_t FirstChild(int32_t parent) const;
  // Positions relative to the page.
  std::span<const TokenExtra> ExtrasOf(int32_t page) const;

  // Requires: not in the tree; no child of `parent` holds the same tokens.
  void Insert(int32_t page, int32_t parent, const PageTokens& tokens);
  // Requires: no children, not in any list of use.
  void Remove(int32_t page);

 private:
  PrefixNode* nodes() const { return reinterpret_cast<PrefixNode*>(memory_.data()); }
  int32_t* buckets() const { return reinterpret_cast<int32_t*>(bucket_memory_.data()); }
  int32_t& FirstChildOf(int32_t parent);
  bool Holds(const PrefixNode& node, int32_t page, const PageTokens& tokens) const;

  Buffer memory_;         // PrefixNode per page
  Buffer bucket_memory_;  // page + 1 of the first node of a bucket; 0: empty
  uint64_t bucket_mask_ = 0;
  PageHash hash_ = HashPage;
  int64_t num_nodes_ = 0;
  struct RootNode {
    std::string fingerprint;
    int32_t first_child = -1;
  };
  std::vector<RootNode> roots_;  // root r is named -1 - r
  // Of the pages that have any; positions relative to the page.
  std::unordered_map<int32_t, std::vector<TokenExtra>> extras_;
};

}  // namespace tq
