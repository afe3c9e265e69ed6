// DiskStore::Find: how far the records of the folder go along a prompt.
#include <algorithm>
#include <utility>

#include "cache/disk_store.h"

namespace tq {

DiskPlan DiskStore::Find(const PrefixTokens& tokens, int64_t first_page, bool has_state) {
  Refresh();
  const auto limit = static_cast<int64_t>(tokens.ids.size()) - 1;
  DiskKey parent = root_;
  std::vector<DiskKey> keys;  // before each page, and after the last
  for (int64_t at = 0;; at += kPageTokens) {
    keys.push_back(parent);
    if (at + kPageTokens > limit) break;
    parent = DiskPageKey(parent, PageOf(tokens, at, kPageTokens));
  }
  const auto name_of = [&](int64_t page, DiskKind kind) {
    return DiskName{keys[static_cast<size_t>(page + 1)], keys[static_cast<size_t>(page)],
                    kPageTokens, kind};
  };
  DiskPlan plan;
  plan.length = first_page * kPageTokens;
  int64_t known = first_page;
  int64_t used = first_page;  // pages of the plan, without a tail
  DiskName tail;
  {
    const std::lock_guard lock(mutex_);
    for (int64_t page = first_page; page < static_cast<int64_t>(keys.size()); ++page) {
      const int64_t begin = page * kPageTokens;
      if (has_state) {
        for (const DiskKey& child : index_.Children(keys[static_cast<size_t>(page)])) {
          const DiskEntry& entry = *index_.Find(child);
          const int64_t end = begin + entry.num_tokens;
          if (entry.num_tokens == kPageTokens || entry.state.bytes == 0) continue;
          if (end > limit || end <= plan.length || CutsExtra(tokens.extras, end)) continue;
          const PageTokens wanted = PageOf(tokens, begin, entry.num_tokens);
          if (DiskPageKey(entry.parent, wanted) != child) continue;
          plan.length = end;
          used = page;
          tail = {child, entry.parent, entry.num_tokens, DiskKind::kPage};
        }
      }
      if (page + 1 == static_cast<int64_t>(keys.size())) break;
      if (!index_.Has(keys[static_cast<size_t>(page + 1)], DiskKind::kPage)) break;
      known = page + 1;
      const int64_t end = known * kPageTokens;
      if (has_state && !index_.Has(keys[static_cast<size_t>(known)], DiskKind::kState)) continue;
      if (CutsExtra(tokens.extras, end)) continue;
      plan.length = end;
      used = known;
      tail = {};
    }
  }
  const auto add_pages = [&] {
    plan.pages.clear();
    for (int64_t page = first_page; page < used; ++page) {
      plan.pages.push_back(name_of(page, DiskKind::kPage));
    }
  };
  if (has_state) {
    add_pages();
    if (tail.num_tokens > 0) plan.pages.push_back(tail);
    plan.has_state = !plan.pages.empty();
    if (plan.has_state) {
      plan.state = plan.pages.back();
      plan.state.kind = DiskKind::kState;
    }
    return plan;
  }
  const int64_t ends_at_a_border = used;
  for (const int64_t page : {known, ends_at_a_border}) {
    const int64_t begin = page * kPageTokens;
    const int64_t count = std::min<int64_t>(limit - begin, kPageTokens);
    used = page;
    add_pages();
    const size_t whole = plan.pages.size();
    if (count > 0) {
      FindPart(keys[static_cast<size_t>(page)], PageOf(tokens, begin, count), plan);
    }
    // A border inside a span is no end; a part of the next page may lie behind the span.
    if (plan.pages.size() > whole || page == ends_at_a_border) break;
  }
  return plan;
}

void DiskStore::FindPart(const DiskKey& parent, const PageTokens& rest, DiskPlan& plan) {
  constexpr size_t kMostChildren = 64;  // newest first: each costs the read of a header
  std::vector<std::pair<int64_t, DiskName>> children;
  {
    const std::lock_guard lock(mutex_);
    for (const DiskKey& key : index_.Children(parent)) {
      const DiskEntry& entry = *index_.Find(key);
      children.push_back(
          {-entry.page.used_ns, {key, entry.parent, entry.num_tokens, DiskKind::kPage}});
    }
  }
  std::sort(children.begin(), children.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  if (children.size() > kMostChildren) children.resize(kMostChildren);
  constexpr int64_t kLeast = 8;  // as in memory
  int64_t most = kLeast - 1;
  for (const auto& [used, name] : children) {
    const auto header = PeekHeader(name);
    if (!header.ok()) {
      Refuse(name, header.status());
      continue;
    }
    const int64_t common = CommonTokens(header->record.tokens(), rest);
    if (common <= most) continue;
    if (most >= kLeast) plan.pages.pop_back();
    most = common;
    plan.pages.push_back(name);
    plan.length = rest.begin + common;
  }
}

}  // namespace tq
