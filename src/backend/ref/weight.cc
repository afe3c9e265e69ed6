#include <algorithm>

#include "backend/matrix_check.h"
#include "backend/ref/ref_ops.h"

namespace tq::ref {

RefWeight::RefWeight(const StoredMatrix& stored)
    : Weight(stored.format, stored.rows, stored.cols),
      matrix_(stored),
      data_(stored.data,
            stored.data + (stored.rows - 1) * stored.row_bytes + RowPayloadBytes(stored)),
      codebook_(stored.codebook.begin(), stored.codebook.end()),
      signs_(stored.signs.begin(), stored.signs.end()) {
  if (stored.scales != nullptr) {
    const int64_t num_scales = stored.rows * (stored.cols / stored.format.group);
    scales_.assign(stored.scales, stored.scales + num_scales * 2);
  }
  matrix_.data = data_.data();
  matrix_.scales = scales_.empty() ? nullptr : scales_.data();
  matrix_.codebook = codebook_;
  matrix_.signs = signs_;
  if (stored.format.codec == CodecId::kTurboQuant) integers_ = FitIntegerCodebook(codebook_);
}

int64_t RefWeight::bytes() const {
  return static_cast<int64_t>(data_.size() + scales_.size() +
                              (codebook_.size() + signs_.size()) * 4);
}

}  // namespace tq::ref
