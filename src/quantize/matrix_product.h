// The one dense product that calibration and error feedback need, for f32 and f64. It lives here
// and not in a backend because it works on plain arrays of the converter, never on weights of a
// model.
#pragma once

#include <cstdint>

namespace tq {

// c[m][n] += sum over k of a[k][m] * b[k][n]; lda, ldb, ldc are the distances of rows.
// The order is fixed, so that every machine gives the same bits: for each 256 of k, one sum in
// ascending order from +0 (a multiplication and an addition per term), which is then added to c.
// Requires: m and n multiples of 16; c overlaps neither a nor b. Thread: any.
void AddTransposedProduct(const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                          int64_t ldc, int64_t m, int64_t n, int64_t depth);
void AddTransposedProduct(const double* a, int64_t lda, const double* b, int64_t ldb, double* c,
                          int64_t ldc, int64_t m, int64_t n, int64_t depth);

}  // namespace tq
