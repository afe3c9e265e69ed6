#include "cache/prefix_key.h"

#include <algorithm>

namespace tq {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 32);
}

}  // namespace

PageTokens PageOf(const PrefixTokens& tokens, int64_t begin, int64_t count) {
  const auto first = std::partition_point(tokens.extras.begin(), tokens.extras.end(),
                                          [&](const TokenExtra& e) { return e.end <= begin; });
  const auto last = std::partition_point(
      first, tokens.extras.end(), [&](const TokenExtra& e) { return e.begin < begin + count; });
  return {begin,
          tokens.ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
          {first, last}};
}

bool CutsExtra(std::span<const TokenExtra> extras, int64_t at) {
  const auto next = std::partition_point(extras.begin(), extras.end(),
                                         [&](const TokenExtra& e) { return e.end <= at; });
  return next != extras.end() && next->begin < at;
}

int64_t CommonTokens(const PageTokens& own, const PageTokens& page) {
  const auto both = std::min(own.ids.size(), page.ids.size());
  const auto differ = std::mismatch(page.ids.begin(), page.ids.begin() + both, own.ids.begin());
  auto common = static_cast<int64_t>(differ.first - page.ids.begin());
  const auto relative = [](const PageTokens& to, size_t i) {
    TokenExtra extra = to.extras[i];
    extra.begin -= to.begin;
    extra.end -= to.begin;
    return extra;
  };
  for (size_t i = 0; i < std::max(own.extras.size(), page.extras.size()); ++i) {
    const bool has_own = i < own.extras.size();
    const bool has_other = i < page.extras.size();
    if (has_own && has_other && relative(own, i) == relative(page, i)) continue;
    if (has_own) common = std::min(common, relative(own, i).begin);
    if (has_other) common = std::min(common, relative(page, i).begin);
    break;
  }
  for (size_t i = 0; i < page.extras.size(); ++i) {
    const TokenExtra extra = relative(page, i);
    if (extra.begin < common && common < extra.end) common = extra.begin;
  }
  return std::max<int64_t>(common, 0);
}

uint64_t HashPage(int32_t parent, const PageTokens& page) {
  uint64_t hash = Mix(0x243f6a8885a308d3, static_cast<uint32_t>(parent));
  for (const int32_t id : page.ids) hash = Mix(hash, static_cast<uint32_t>(id));
  for (const TokenExtra& extra : page.extras) {
    hash = Mix(hash, static_cast<uint64_t>(extra.begin - page.begin));
    hash = Mix(hash, static_cast<uint64_t>(extra.end - page.begin));
    for (const uint64_t word : extra.key) hash = Mix(hash, word);
  }
  return hash;
}

}  // namespace tq
