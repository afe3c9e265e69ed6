// Cholesky factor of a dense positive definite matrix, in f64. Same bits for any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.h"

namespace tq {

// a [n, n], of which the lower triangle is read, becomes L with L L^T = a (the rest is left as it
// is). Returns whether a is positive definite as far as f64 can tell; if not, a is of no use.
// Requires: n a multiple of 16. Cost: n^3 / 3 multiplications and additions.
bool CholeskyInPlace(std::vector<double>& a, int64_t n, ThreadPool& pool);

// body(strip) for every strip in [0, num_strips), where the work of a strip grows with its number:
// pairs of a heavy and a light one keep the threads equally busy.
template <typename Body>
void ForTriangleStrips(ThreadPool& pool, int64_t num_strips, Body&& body) {
  pool.ParallelFor((num_strips + 1) / 2, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      body(num_strips - 1 - i);
      if (i != num_strips - 1 - i) body(i);
    }
  });
}

}  // namespace tq
