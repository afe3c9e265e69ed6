#include <algorithm>

#include "backend/matrix_check.h"
#include "backend/ref/ref_ops.h"

namespace tq::ref {

RefWeight::RefWeight(const StoredMatrix& stored)
    : Weight(stored.format, stored.rows, stored.cols),
      bytes_(BytesOf(stored)),
      matrix_(stored),
      data_(stored.data,
            stored.data + (stored.rows - 1) * stored.row_bytes + stored.payload_bytes()),
      codebook_(stored.codebook.begin(), stored.codebook.end()),
      signs_(stored.signs.begin(), stored.signs.end()) {
  if (stored.scales != nullptr) {
    scales_.assign(stored.scales, stored.scales + stored.scale_bytes());
  }
  if (stored.biases != nullptr) {
    biases_.assign(stored.biases, stored.biases + stored.scale_bytes());
  }
  matrix_.data = data_.data();
  matrix_.scales = scales_.empty() ? nullptr : scales_.data();
  matrix_.biases = biases_.empty() ? nullptr : biases_.data();
  matrix_.codebook = codebook_;
  matrix_.signs = signs_;
  if (stored.format.codec == CodecId::kTurboQuant) integers_ = FitIntegerCodebook(codebook_);
  grid_ = GridOf(matrix_);
}

int64_t RefWeight::BytesOf(const StoredMatrix& stored) {
  int64_t bytes = (stored.rows - 1) * stored.row_bytes + stored.payload_bytes();
  if (stored.scales != nullptr) bytes += stored.scale_bytes();
  if (stored.biases != nullptr) bytes += stored.scale_bytes();
  return bytes + static_cast<int64_t>((stored.codebook.size() + stored.signs.size()) * 4);
}

}  // namespace tq::ref
