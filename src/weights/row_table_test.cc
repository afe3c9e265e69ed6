// Rows read out of the file have the bits of the Embed op on a prepared table, whatever the format.
#include "weights/row_table.h"

#include <gtest/gtest.h>

#include "backend/op_matrix.h"

namespace tq {
namespace {

constexpr int64_t kRows = 37;
constexpr int64_t kCols = 128;

std::vector<std::pair<std::string, TestMatrix>> Matrices() {
  std::vector<std::pair<std::string, TestMatrix>> out;
  for (const CodecId codec : {CodecId::kF32, CodecId::kF16, CodecId::kBf16, CodecId::kQ8_0}) {
    out.emplace_back("codec " + std::to_string(static_cast<int>(codec)),
                     TestMatrix::Block(codec, kRows, kCols, 1));
  }
  for (const int entries : {3, 4, 8, 16}) {
    for (const Transform transform : {Transform::kNone, Transform::kHadamard}) {
      out.emplace_back("turboquant " + std::to_string(entries),
                       TestMatrix::Turbo(entries, 64, transform, kRows, kCols, 2));
    }
  }
  out.emplace_back("affine", TestMatrix::Groups({CodecId::kAffine, 4, 32, Transform::kNone},
                                                DType::kBf16, true, 1, kRows, kCols, 3));
  return out;
}

TEST(RowTable, ReadsWhatEmbedGives) {
  std::vector<int32_t> ids;
  for (int64_t row = 0; row < kRows; ++row) ids.push_back(static_cast<int32_t>(row));
  for (const auto& [name, matrix] : Matrices()) {
    MatrixTensors tensors;
    tensors.matrix = matrix.stored();
    const RowTable table(std::move(tensors), nullptr);
    std::vector<float> found(static_cast<size_t>(kRows * kCols));
    for (int64_t row = 0; row < kRows; ++row) table.Read(row, found.data() + row * kCols);
    for (const BackendChoice& choice : AvailableBackends()) {
      const auto backend = MakeTestBackend(choice.backend, choice.isa, 1);
      const auto weight = std::move(backend->Prepare(matrix.stored())).value();
      std::vector<float> want(found.size());
      backend->Embed({.table = weight.get(), .ids = ids, .out = want.data()});
      EXPECT_EQ(FirstDifferentBits(want, found), -1) << name << " " << choice.isa;
    }
  }
}

TEST(RowTable, KeepsItsMappingAndCountsItsParts) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(2 * kCols);
  const std::weak_ptr<std::vector<std::byte>> watch = bytes;
  SourceTensor part;
  part.bytes = *bytes;
  MatrixTensors tensors;
  tensors.matrix = TestMatrix::Block(CodecId::kBf16, 1, kCols, 1).stored();
  tensors.matrix.data = bytes->data();
  tensors.parts = {&part};
  auto table = std::make_unique<RowTable>(std::move(tensors), bytes);
  EXPECT_EQ(table->mapped_bytes(), 2 * kCols);
  EXPECT_EQ(watch.use_count(), 2);
  table.reset();
  EXPECT_EQ(watch.use_count(), 1);
}

}  // namespace
}  // namespace tq
