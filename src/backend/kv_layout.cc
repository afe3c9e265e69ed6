#include "backend/kv_layout.h"

namespace tq {
namespace {

// Groups that the integer kernels take: 3-bit codes need units of 32 columns.
bool HasCodeTiles(KvFormat format, int group) {
  const bool narrow = KvBits(format) <= 4 || format == KvFormat::kInt8;
  return narrow && (group == 16 || group == 32 || group == 64 || group == 128);
}

KvTile MakeTile(KvFormat format, int group_size, int dim, bool is_value, bool may_have_tiles) {
  KvTile tile;
  tile.format = format;
  tile.dim = dim;
  tile.is_value = is_value;
  tile.layout_bits = KvBits(format);
  if (!KvIsPacked(format) || dim == 0) return tile;
  tile.group = KvGroup(group_size, dim);
  if (!may_have_tiles || !HasCodeTiles(format, tile.group)) {
    tile.kind = KvTile::Kind::kCodeRows;
    return tile;
  }
  tile.kind = KvTile::Kind::kCodeTiles;
  const bool splits_unit = !is_value && tile.layout_bits == 3 && tile.group == 16;
  if (splits_unit) tile.layout_bits = 4;
  return tile;
}

}  // namespace

KvTile KvLayout::k_tile() const {
  return MakeTile(k_format(), settings.group_size, head_dim, false, values == KvValues::kOwn);
}

KvTile KvLayout::v_tile() const {
  const int dim = values == KvValues::kOwn ? v_head_dim : 0;
  return MakeTile(v_format(), settings.group_size, dim, true, true);
}

KvLayout KvLayout::exact_layout() const {
  KvLayout exact = *this;
  if (KvIsPacked(settings.k)) exact.settings.k = settings.exact;
  if (KvIsPacked(settings.v)) exact.settings.v = settings.exact;
  exact.settings.min_tokens = 0;
  return exact;
}

}  // namespace tq
