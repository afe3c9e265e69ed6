// TextSpan: a part of a text, in bytes, cut at character boundaries.
#pragma once

#include <cstddef>

namespace tq {

struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
};

}  // namespace tq
