#include "cache/prefix_tree.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/check.h"

namespace tq {

static_assert(std::is_trivially_copyable_v<PrefixNode>);

Result<PrefixTree> PrefixTree::Create(int64_t num_pages, PageHash hash) {
  PrefixTree tree;
  const auto pages = static_cast<size_t>(std::max<int64_t>(num_pages, 1));
  const size_t buckets = std::bit_ceil(2 * pages);
  TQ_ASSIGN_OR_RETURN(tree.memory_, Buffer::Allocate(pages * sizeof(PrefixNode)));
  TQ_ASSIGN_OR_RETURN(tree.bucket_memory_, Buffer::Allocate(buckets * sizeof(int32_t)));
  tree.bucket_mask_ = buckets - 1;
  tree.hash_ = hash;
  return tree;
}

int32_t PrefixTree::Root(std::string_view fingerprint) {
  for (size_t i = 0; i < roots_.size(); ++i) {
    if (roots_[i].fingerprint == fingerprint) return -1 - static_cast<int32_t>(i);
  }
  roots_.push_back({std::string(fingerprint), -1});
  return -static_cast<int32_t>(roots_.size());
}

int32_t PrefixTree::FirstChild(int32_t parent) const {
  return IsRoot(parent) ? roots_[static_cast<size_t>(-1 - parent)].first_child
                        : node(parent).first_child;
}

int32_t& PrefixTree::FirstChildOf(int32_t parent) {
  return IsRoot(parent) ? roots_[static_cast<size_t>(-1 - parent)].first_child
                        : node(parent).first_child;
}

std::span<const TokenExtra> PrefixTree::ExtrasOf(int32_t page) const {
  const auto found = extras_.find(page);
  return found == extras_.end() ? std::span<const TokenExtra>() : found->second;
}

int64_t PrefixTree::CommonTokens(int32_t name, const PageTokens& page) const {
  const PrefixNode& node = this->node(name);
  const std::span<const int32_t> ids(node.ids, static_cast<size_t>(node.num_tokens));
  return tq::CommonTokens({0, ids, ExtrasOf(name)}, page);
}

bool PrefixTree::Holds(const PrefixNode& node, int32_t name, const PageTokens& tokens) const {
  if (static_cast<size_t>(node.num_tokens) != tokens.ids.size()) return false;
  if (!std::equal(tokens.ids.begin(), tokens.ids.end(), node.ids)) return false;
  const std::span<const TokenExtra> own = ExtrasOf(name);
  return std::equal(own.begin(), own.end(), tokens.extras.begin(), tokens.extras.end(),
                    [&](const TokenExtra& a, const TokenExtra& b) {
                      return a.begin == b.begin - tokens.begin && a.end == b.end - tokens.begin &&
                             a.key == b.key;
                    });
}

int32_t PrefixTree::Find(int32_t parent, const PageTokens& tokens) const {
  const uint64_t hash = hash_(parent, tokens);
  int32_t page = buckets()[hash & bucket_mask_] - 1;
  while (page >= 0) {
    const PrefixNode& node = this->node(page);
    if (node.hash == hash && node.parent == parent && Holds(node, page, tokens)) return page;
    page = node.next_in_bucket;
  }
  return -1;
}

void PrefixTree::Insert(int32_t page, int32_t parent, const PageTokens& tokens) {
  TQ_CHECK(!tokens.ids.empty() && tokens.ids.size() <= kPageTokens);
  PrefixNode& node = this->node(page);
  node = {};
  node.parent = parent;
  node.first_child = -1;
  node.num_tokens = static_cast<int32_t>(tokens.ids.size());
  node.checkpoint = -1;
  std::copy(tokens.ids.begin(), tokens.ids.end(), node.ids);
  if (!tokens.extras.empty()) {
    std::vector<TokenExtra>& own = extras_[page];
    own.assign(tokens.extras.begin(), tokens.extras.end());
    for (TokenExtra& extra : own) {
      extra.begin -= tokens.begin;
      extra.end -= tokens.begin;
    }
  }
  node.hash = hash_(parent, tokens);
  int32_t& bucket = buckets()[node.hash & bucket_mask_];
  node.next_in_bucket = bucket - 1;
  bucket = page + 1;
  int32_t& first = FirstChildOf(parent);
  node.previous_sibling = -1;
  node.next_sibling = first;
  if (first >= 0) this->node(first).previous_sibling = page;
  first = page;
  ++num_nodes_;
}

void PrefixTree::Remove(int32_t page) {
  const PrefixNode& node = this->node(page);
  TQ_CHECK(node.first_child < 0);
  int32_t& bucket = buckets()[node.hash & bucket_mask_];
  if (bucket == page + 1) {
    bucket = node.next_in_bucket + 1;
  } else {
    int32_t before = bucket - 1;
    while (this->node(before).next_in_bucket != page) before = this->node(before).next_in_bucket;
    this->node(before).next_in_bucket = node.next_in_bucket;
  }
  if (node.next_sibling >= 0) {
    this->node(node.next_sibling).previous_sibling = node.previous_sibling;
  }
  if (node.previous_sibling >= 0) {
    this->node(node.previous_sibling).next_sibling = node.next_sibling;
  } else {
    FirstChildOf(node.parent) = node.next_sibling;
  }
  extras_.erase(page);
  this->node(page).disk = {};
  --num_nodes_;
}

}  // namespace tq
