#include "backend/cpu/cpu_kv_append.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tq {
namespace {

// Elementary operations that are worth waking the other threads.
constexpr int64_t kParallelCost = 16384;
// Of a value that is rotated and coded.
constexpr int64_t kPackedCost = 32;

// The tiles of packed and of exact pages.
struct Tiles {
  KvTile k;
  KvTile v;
  int64_t page_bytes;
  int64_t head_bytes;
  explicit Tiles(const KvLayout& layout)
      : k(layout.k_tile()),
        v(layout.v_tile()),
        page_bytes(layout.page_bytes()),
        head_bytes(layout.head_bytes()) {}
};

class Appender {
 public:
  Appender(const PackedKernels& kernels, const KvAppendArgs& args)
      : kernels_(kernels),
        args_(args),
        packed_(args.layout),
        exact_(args.layout.exact_layout()),
        num_exact_(args.layout.num_exact_pages()) {}

  // Tokens of a value tile share bytes.
  bool SharesBytes() const { return packed_.v.kind == KvTile::Kind::kCodeTiles; }
  int64_t Cost() const {
    return int64_t{2} * args_.layout.head_dim * (args_.layout.packed() ? kPackedCost : 1);
  }

  // Head g of the sequence's token i.
  void Append(const SequencePlan& sequence, int64_t i, int64_t g, KvRowWork& work) const {
    const KvLayout& layout = args_.layout;
    const int64_t position = sequence.start_position + i;
    const int64_t index = position / kPageTokens;
    const int64_t slot = position % kPageTokens;
    const int32_t page = sequence.pages[static_cast<size_t>(index)];
    const bool exact = index < num_exact_;
    const Tiles& tiles = exact ? exact_ : packed_;
    std::byte* base = exact ? args_.exact.base + args_.exact.slots[page] * tiles.page_bytes
                            : args_.pages + page * tiles.page_bytes;
    std::byte* k_tile = base + g * tiles.head_bytes;
    const int64_t row = (sequence.first_token + i) * layout.num_kv_heads + g;
    Store(tiles.k, *kernels_.k_rotation, args_.k + row * layout.head_dim, slot, k_tile, work);
    if (layout.values != KvValues::kOwn) return;
    Store(tiles.v, *kernels_.v_rotation, args_.v + row * layout.v_head_dim, slot,
          k_tile + tiles.k.bytes(), work);
  }

 private:
  void Store(const KvTile& tile, const KvRotation& rotation, const float* row, int64_t slot,
             std::byte* bytes, KvRowWork& work) const {
    if (!rotation.empty()) {
      work.row.assign(row, row + tile.dim);
      for (const KvRotationPart& part : rotation) {
        kernels_.floats->rotate_row(work.row.data() + part.offset, part.signs, part.dim,
                                    part.block.m, part.block.pow2);
      }
      row = work.row.data();
    }
    if (KvIsPacked(tile.format)) {
      work.codes.resize(static_cast<size_t>(tile.dim));
      work.scales.resize(static_cast<size_t>(tile.num_groups()));
      kernels_.floats->encode_kv(tile.format, row, tile.dim, tile.group, work.codes.data(),
                                 work.scales.data());
      return StoreKvCodes(tile, bytes, slot, work.codes.data(), work.scales.data());
    }
    const bool f16 = tile.format == KvFormat::kF16;
    if (!f16 && tile.format != KvFormat::kF32) return StoreKvRow(tile, bytes, slot, row, work);
    if (tile.is_value) {
      kernels_.floats->kv_append(f16, 0, tile.dim, nullptr, bytes, slot, nullptr, row);
    } else {
      kernels_.floats->kv_append(f16, tile.dim, 0, bytes, nullptr, slot, row, nullptr);
    }
  }

  const PackedKernels& kernels_;
  const KvAppendArgs& args_;
  Tiles packed_;
  Tiles exact_;
  int64_t num_exact_;
};

}  // namespace

void CpuKvAppend(const PackedKernels& kernels, const KvAppendArgs& args, ThreadPool& pool,
                 std::span<KvRowWork> work) {
  const Appender appender(kernels, args);
  const int64_t heads = args.layout.num_kv_heads;
  const std::vector<SequencePlan>& sequences = args.plan->sequences;
  // A token of each of several sequences: few operations, but all far from any cache.
  if (sequences.size() > 1 && std::ranges::all_of(sequences, [](const SequencePlan& sequence) {
        return sequence.num_tokens == 1;
      })) {
    const auto n = static_cast<int64_t>(sequences.size()) * heads;
    pool.ParallelFor(n, 1, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; ++i) {
        appender.Append(sequences[static_cast<size_t>(i / heads)], 0, i % heads,
                        work[static_cast<size_t>(thread)]);
      }
    });
    return;
  }
  for (const SequencePlan& sequence : sequences) {
    const int64_t tokens = sequence.num_tokens;
    const int64_t n = appender.SharesBytes() ? heads : tokens;
    const bool alone = tokens * heads * appender.Cost() < kParallelCost;
    pool.ParallelFor(n, alone ? std::max<int64_t>(n, 1) : 1,
                     [&](int64_t begin, int64_t end, int thread) {
                       KvRowWork& own = work[static_cast<size_t>(thread)];
                       for (int64_t i = begin; i < end; ++i) {
                         if (appender.SharesBytes()) {
                           for (int64_t t = 0; t < tokens; ++t) {
                             appender.Append(sequence, t, i, own);
                           }
                         } else {
                           for (int64_t g = 0; g < heads; ++g) {
                             appender.Append(sequence, i, g, own);
                           }
                         }
                       }
                     });
  }
}

}  // namespace tq
