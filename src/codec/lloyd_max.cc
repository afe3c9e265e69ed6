#include <bit>

#include "base/check.h"
#include "codec/turbo_quant.h"
#include "tensor/half.h"

namespace tq {
namespace {

// Positive halves, as published: the 4-bit values are up to 8.2e-4 off the true optimum and must
// be, because files depend on them. Boundaries are the f32 the reference compares with.
struct HalfTable {
  bool has_zero;  // trits: a centroid at 0 instead of a boundary at 0
  std::vector<double> centroids;
  std::vector<uint32_t> boundary_bits;
};

LloydMaxTable Mirror(const HalfTable& half) {
  LloydMaxTable table;
  for (auto it = half.centroids.rbegin(); it != half.centroids.rend(); ++it) {
    table.centroids.push_back(-static_cast<float>(*it));
  }
  if (half.has_zero) table.centroids.push_back(0.0f);
  for (const double centroid : half.centroids) {
    table.centroids.push_back(static_cast<float>(centroid));
  }
  for (auto it = half.boundary_bits.rbegin(); it != half.boundary_bits.rend(); ++it) {
    table.boundaries.push_back(-std::bit_cast<float>(*it));
  }
  if (!half.has_zero) table.boundaries.push_back(0.0f);
  for (const uint32_t bits : half.boundary_bits) {
    table.boundaries.push_back(std::bit_cast<float>(bits));
  }
  for (const float centroid : table.centroids) {
    table.stored.push_back(F16ToF32(F32ToF16(centroid)));
  }
  return table;
}

std::array<LloydMaxTable, 5> MakeTables() {
  return {Mirror({false, {0.7978845608}, {}}), Mirror({true, {1.22401}, {0x3f1cac5c}}),
          Mirror({false, {0.4527799975, 1.5104174569}, {0x3f7b4a0e}}),
          Mirror({false,
                  {0.2450941497, 0.7560051861, 1.3439090860, 2.1519452850},
                  {0x3f002406, 0x3f8664ff, 0x3fdfbc14}}),
          Mirror({false,
                  {0.1285059463, 0.3883729570, 0.6572738605, 0.9430078288, 1.2570025732,
                   1.6188648437, 2.0698191883, 2.7332986608},
                  {0x3e84522d, 0x3f05d7c1, 0x3f4cd608, 0x3f8cccf8, 0x3fb80e36, 0x3fec1366,
                   0x4019b324}})};
}

}  // namespace

const LloydMaxTable& LloydMaxCodebook(int entries) {
  static const std::array<LloydMaxTable, 5> tables = MakeTables();
  switch (entries) {
    case 2:
      return tables[0];
    case 3:
      return tables[1];
    case 4:
      return tables[2];
    case 8:
      return tables[3];
    case 16:
      return tables[4];
    default:
      break;
  }
  CheckFailed(__FILE__, __LINE__, "a Lloyd-Max codebook has 2, 3, 4, 8 or 16 entries");
}

}  // namespace tq
