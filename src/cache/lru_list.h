// LruList: names in the order of their last use, linked through the nodes themselves, so that
// nothing is allocated. The nodes are reached as `tree.node(name)`. Thread: engine.
#pragma once

#include <cstdint>

namespace tq {

struct LruLinks {
  int32_t older;
  int32_t newer;
};

template <typename Node, LruLinks Node::*kLinks>
class LruList {
 public:
  int32_t oldest() const { return oldest_; }  // -1: empty
  int64_t size() const { return size_; }

  template <typename Tree>
  void PushNewest(Tree& tree, int32_t name) {
    tree.node(name).*kLinks = {newest_, -1};
    if (newest_ >= 0) (tree.node(newest_).*kLinks).newer = name;
    newest_ = name;
    if (oldest_ < 0) oldest_ = name;
    ++size_;
  }
  // Requires: `name` is in the list.
  template <typename Tree>
  void Remove(Tree& tree, int32_t name) {
    const LruLinks links = tree.node(name).*kLinks;
    if (links.older >= 0) (tree.node(links.older).*kLinks).newer = links.newer;
    if (links.newer >= 0) (tree.node(links.newer).*kLinks).older = links.older;
    if (oldest_ == name) oldest_ = links.newer;
    if (newest_ == name) newest_ = links.older;
    --size_;
  }

 private:
  int32_t oldest_ = -1;
  int32_t newest_ = -1;
  int64_t size_ = 0;
};

}  // namespace tq
