// What the pages of a sequence depend on: its ids up to their end and, where an id stands for more
// than itself (an image's placeholder), what it stands for.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "backend/step_plan.h"

namespace tq {

// The ids of [begin, end) stand for something else, named by the hash `key` of its content. Such a
// span is reused as a whole or not at all.
struct TokenExtra {
  int64_t begin = 0;
  int64_t end = 0;
  std::array<uint64_t, 2> key = {};
  friend bool operator==(const TokenExtra&, const TokenExtra&) = default;
};

// Borrowed. extras: ascending, not overlapping, inside the ids.
struct PrefixTokens {
  std::span<const int32_t> ids;
  std::span<const TokenExtra> extras;
};

// The tokens of one page: `ids` from absolute position `begin` on, and the extras that reach into
// them, still at absolute positions.
struct PageTokens {
  int64_t begin = 0;
  std::span<const int32_t> ids;
  std::span<const TokenExtra> extras;
};

// count: at most kPageTokens. Requires: begin + count <= tokens.ids.size().
PageTokens PageOf(const PrefixTokens& tokens, int64_t begin, int64_t count);

// Whether position `at` cuts a span in two.
bool CutsExtra(std::span<const TokenExtra> extras, int64_t at);

// How many of the first tokens of `page` the page `own` holds too; never a part of an extra.
int64_t CommonTokens(const PageTokens& own, const PageTokens& page);

// Equal pages under the same parent have equal hashes; what differs may collide.
uint64_t HashPage(int32_t parent, const PageTokens& page);

}  // namespace tq
