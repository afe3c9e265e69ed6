// The op matrix: every backend and instruction set of this machine gives the bits of `ref`,
// whatever the number of threads and the company in the batch; `ref` itself is held against f64
// arithmetic.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/ref/ref_ops.h"
#include "backend/test_matrix.h"
#include "codec/hadamard.h"

namespace tq {
namespace {

std::unique_ptr<Backend> Make(const BackendChoice& choice, ActivationMode mode, int threads) {
  Result<std::unique_ptr<Backend>> made =
      MakeBackend(choice.backend, {.num_threads = threads, .activations = mode, .isa = choice.isa});
  TQ_CHECK(made.ok());
  return std::move(made).value();
}

std::string Name(const BackendChoice& choice) { return choice.backend + "/" + choice.isa; }

// y [T, N] of one matrix; the floats behind it must stay untouched.
std::vector<float> MatMul(Backend& backend, const Weight& weight, const std::vector<float>& x,
                          const float* bias, int64_t num_tokens) {
  constexpr int64_t kGuard = 32;
  const int64_t size = num_tokens * weight.rows();
  std::vector<float> y(static_cast<size_t>(size + kGuard), -77.0f);
  Scratch scratch;
  const MatMulArgs args{&weight, x.data(), bias, y.data(), num_tokens};
  backend.MatMul({&args, 1}, scratch);
  for (int64_t i = size; i < size + kGuard; ++i)
    EXPECT_EQ(y[i], -77.0f) << "wrote behind its output";
  y.resize(static_cast<size_t>(size));
  return y;
}

testing::AssertionResult SameBits(const std::vector<float>& expected,
                                  const std::vector<float>& found) {
  if (expected.size() != found.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&expected[i], &found[i], 4) != 0) {
      return testing::AssertionFailure()
             << "element " << i << ": expected " << expected[i] << ", found " << found[i];
    }
  }
  return testing::AssertionSuccess();
}

// Runs one matrix through ref and everything else, in all batch sizes and both modes.
void CheckMatrix(const TestMatrix& matrix, const std::string& what,
                 const std::vector<int64_t>& token_counts = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33}) {
  const int64_t cols = matrix.stored().cols;
  const int64_t rows = matrix.stored().rows;
  const int64_t most = token_counts.back();
  const std::vector<float> x = RandomFloats(most * cols, 5);
  const std::vector<float> bias = RandomFloats(rows, 6);
  for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kF32}) {
    const std::unique_ptr<Backend> ref = Make({"ref", "scalar"}, mode, 1);
    Result<std::unique_ptr<Weight>> ref_weight = ref->Prepare(matrix.stored());
    ASSERT_TRUE(ref_weight.ok()) << ref_weight.status().message();
    const std::vector<float> expected = MatMul(*ref, **ref_weight, x, bias.data(), most);
    for (const BackendChoice& choice : AvailableBackends()) {
      const std::unique_ptr<Backend> backend = Make(choice, mode, 2);
      Result<std::unique_ptr<Weight>> weight = backend->Prepare(matrix.stored());
      ASSERT_TRUE(weight.ok()) << weight.status().message();
      for (const int64_t num_tokens : token_counts) {
        const std::vector<float> head(expected.begin(), expected.begin() + num_tokens * rows);
        EXPECT_TRUE(SameBits(head, MatMul(*backend, **weight, x, bias.data(), num_tokens)))
            << what << " " << Name(choice) << " M=" << num_tokens << " mode "
            << static_cast<int>(mode);
      }
      // A row alone, and without a bias.
      const std::vector<float> last(x.end() - cols, x.end());
      std::vector<float> alone = MatMul(*backend, **weight, last, nullptr, 1);
      for (int64_t n = 0; n < rows; ++n) alone[n] = alone[n] + bias[n];
      EXPECT_TRUE(SameBits({expected.end() - rows, expected.end()}, alone))
          << what << " " << Name(choice) << " alone";
    }
  }
}

TEST(MatMulMatrix, TurboQuantFormats) {
  for (const int entries : {2, 3, 4, 8, 16}) {
    for (const int group : {16, 32, 64, 128}) {
      for (const Transform transform : {Transform::kNone, Transform::kHadamard}) {
        const TestMatrix matrix = TestMatrix::Turbo(entries, group, transform, 35, 384, 1);
        CheckMatrix(matrix, FormatName(matrix.stored()));
      }
    }
  }
}

TEST(MatMulMatrix, TurboQuantShapes) {
  struct Case {
    int64_t rows, cols;
    int entries, group;
  };
  // One row, odd rows, a short last activation block, Hadamard blocks with m = 1, 12, 20, 28, many
  // tiles.
  for (const Case& c : {Case{1, 16, 4, 16}, Case{1, 64, 8, 64}, Case{16, 256, 16, 64},
                        Case{17, 320, 8, 64}, Case{33, 288, 4, 32}, Case{15, 640, 16, 128},
                        Case{31, 896, 8, 32}, Case{260, 192, 16, 64}, Case{5, 3072, 8, 128}}) {
    const TestMatrix matrix =
        TestMatrix::Turbo(c.entries, c.group, Transform::kHadamard, c.rows, c.cols, 2);
    CheckMatrix(matrix, FormatName(matrix.stored()) + " " + std::to_string(c.rows) + "x" +
                            std::to_string(c.cols));
  }
}

// Integer codebooks that use the whole range, on one side only: the worst case of 16-bit sums.
TEST(MatMulMatrix, LopsidedCodebooks) {
  for (const int entries : {3, 4, 8, 16}) {
    TestMatrix matrix = TestMatrix::Turbo(entries, 64, Transform::kNone, 18, 256, 3);
    std::vector<float> codebook(static_cast<size_t>(entries), 63.0f);
    codebook.front() = -63.0f;
    codebook[1] = -62.0f;
    matrix.SetCodebook(codebook);
    CheckMatrix(matrix, "lopsided " + std::to_string(entries));
  }
}

TEST(MatMulMatrix, PlainFloats) {
  for (const CodecId codec : {CodecId::kF32, CodecId::kF16, CodecId::kBf16}) {
    for (const int64_t cols : {1, 2, 3, 255, 256, 257, 640}) {
      for (const int64_t rows : {1, 16, 39}) {
        CheckMatrix(TestMatrix::Block(codec, rows, cols, 4), std::string(GetCodec(codec).name) +
                                                                 " " + std::to_string(rows) + "x" +
                                                                 std::to_string(cols));
      }
    }
  }
}

TEST(MatMulMatrix, EveryBlockFormat) {
  for (const CodecInfo& codec : AllCodecs()) {
    if (codec.block_bytes == 0 || codec.block_values == 1) continue;
    CheckMatrix(TestMatrix::Block(codec.id, 18, 3 * codec.block_values, 4), codec.name,
                codec.grid == nullptr ? std::vector<int64_t>{1, 9}
                                      : std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 17});
    CheckMatrix(TestMatrix::Block(codec.id, 1, codec.block_values, 4), codec.name, {1, 2});
  }
}

TEST(MatMulMatrix, FormatsWithScalesOfTheirOwn) {
  struct Case {
    Format format;
    DType scale_type;
    bool biases;
    int64_t block_rows;
  };
  std::vector<Case> cases;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    cases.push_back({{CodecId::kAffine, bits, 32}, DType::kBf16, true, 1});
  }
  for (const int group : {64, 128}) {
    cases.push_back({{CodecId::kAffine, 3, group}, DType::kF16, true, 1});
    cases.push_back({{CodecId::kAffine, 4, group}, DType::kF32, true, 1});
    cases.push_back({{CodecId::kAffine, 8, group}, DType::kF16, true, 1});
  }
  cases.push_back({{CodecId::kAffine, 4, 32}, DType::kF16, false, 1});
  cases.push_back({{CodecId::kFp4, 4, 32}, DType::kE8M0, false, 1});
  cases.push_back({{CodecId::kFp4, 4, 16}, DType::kF8E4M3, false, 1});
  cases.push_back({{CodecId::kFp8, 8, 32}, DType::kE8M0, false, 1});
  cases.push_back({{CodecId::kFp8, 8, 64}, DType::kF32, false, 8});
  for (const Case& c : cases) {
    const TestMatrix matrix =
        TestMatrix::Groups(c.format, c.scale_type, c.biases, c.block_rows, 19, 384, 4);
    CheckMatrix(matrix, FormatName(matrix.stored()), {1, 2, 5, 9, 17, 33});
  }
}

TEST(MatMulMatrix, RotatedFloats) {
  TestMatrix matrix = TestMatrix::Block(CodecId::kF32, 19, 320, 4);
  matrix.SetRotated(5);
  CheckMatrix(matrix, "rotated f32", {1, 9});
}

// Several calls of wide passes, several groups of tiles, columns that end inside a chunk.
TEST(MatMulMatrix, ManyTokens) {
  const std::vector<int64_t> tokens = {15, 16, 64, 65, 530};
  CheckMatrix(TestMatrix::Turbo(16, 64, Transform::kHadamard, 147, 320, 1), "4 bits", tokens);
  CheckMatrix(TestMatrix::Turbo(8, 32, Transform::kHadamard, 17, 288, 1), "3 bits", tokens);
  CheckMatrix(TestMatrix::Block(CodecId::kQ4K, 40, 512, 1), "q4_k", tokens);
  CheckMatrix(TestMatrix::Block(CodecId::kQ8_0, 40, 288, 1), "q8_0", tokens);
}

// Matrices of one number of columns in one call give what each gives alone with one thread.
void CheckGroup(const std::vector<TestMatrix>& matrices, const std::vector<int64_t>& token_counts) {
  const int64_t cols = matrices[0].stored().cols;
  const std::vector<float> x =
      RandomFloats(*std::max_element(token_counts.begin(), token_counts.end()) * cols, 7);
  for (const BackendChoice& choice : AvailableBackends()) {
    for (const int64_t num_tokens : token_counts) {
      std::vector<std::vector<float>> one_by_one;
      const std::unique_ptr<Backend> single = Make(choice, ActivationMode::kInt8, 1);
      for (const TestMatrix& matrix : matrices) {
        Result<std::unique_ptr<Weight>> weight = single->Prepare(matrix.stored());
        one_by_one.push_back(MatMul(*single, **weight, x, nullptr, num_tokens));
      }
      for (const int threads : {1, 2, 3, 7}) {
        const std::unique_ptr<Backend> backend = Make(choice, ActivationMode::kInt8, threads);
        std::vector<std::unique_ptr<Weight>> weights;
        std::vector<std::vector<float>> y;
        std::vector<MatMulArgs> args;
        for (const TestMatrix& matrix : matrices) {
          Result<std::unique_ptr<Weight>> weight = backend->Prepare(matrix.stored());
          weights.push_back(std::move(weight).value());
          y.emplace_back(static_cast<size_t>(num_tokens * matrix.stored().rows), -77.0f);
        }
        for (size_t i = 0; i < y.size(); ++i)
          args.push_back({weights[i].get(), x.data(), nullptr, y[i].data(), num_tokens});
        Scratch scratch;
        backend->MatMul(args, scratch);
        for (size_t i = 0; i < y.size(); ++i) {
          EXPECT_TRUE(SameBits(one_by_one[i], y[i]))
              << Name(choice) << " threads " << threads << " matrix " << i;
        }
      }
    }
  }
}

TEST(MatMulMatrix, ThreadsAndGroupsDoNotMatter) {
  std::vector<TestMatrix> matrices;
  matrices.push_back(TestMatrix::Turbo(8, 64, Transform::kHadamard, 70, 256, 1));
  matrices.push_back(TestMatrix::Turbo(16, 32, Transform::kHadamard, 1, 256, 2));
  matrices.push_back(TestMatrix::Block(CodecId::kBf16, 90, 256, 3));
  matrices.push_back(TestMatrix::Turbo(4, 128, Transform::kNone, 33, 256, 4));
  CheckGroup(matrices, {1, 11, 40});
}

// Several pieces to a thread, which end in the middle of matrices.
TEST(MatMulMatrix, LargeMatricesAreCutInPieces) {
  std::vector<TestMatrix> matrices;
  matrices.push_back(TestMatrix::Turbo(16, 64, Transform::kHadamard, 1999, 1024, 1));
  matrices.push_back(TestMatrix::Turbo(8, 64, Transform::kHadamard, 7, 1024, 2));
  matrices.push_back(TestMatrix::Block(CodecId::kBf16, 500, 1024, 3));
  matrices.push_back(TestMatrix::Block(CodecId::kQ4K, 1030, 1024, 4));
  CheckGroup(matrices, {1, 17});
}

// Matrices that see the same input share its preparation, if and only if it is the same.
TEST(MatMulMatrix, OneInputForManyMatrices) {
  std::vector<TestMatrix> matrices;
  for (const int entries : {8, 8, 16, 4}) {
    matrices.push_back(TestMatrix::Turbo(entries, 64, Transform::kHadamard, 33, 256, 9));
  }
  matrices.push_back(TestMatrix::Turbo(8, 64, Transform::kHadamard, 33, 256, 10));
  matrices.push_back(TestMatrix::Turbo(8, 32, Transform::kNone, 33, 256, 9));
  matrices.push_back(TestMatrix::Block(CodecId::kQ4K, 33, 256, 1));
  matrices.push_back(TestMatrix::Block(CodecId::kQ4_0, 33, 256, 2));
  matrices.push_back(TestMatrix::Block(CodecId::kQ8_0, 33, 256, 2));
  matrices.push_back(TestMatrix::Block(CodecId::kQ6K, 33, 256, 2));
  matrices.push_back(TestMatrix::Block(CodecId::kF32, 33, 256, 2));
  matrices.push_back(TestMatrix::Block(CodecId::kF16, 33, 256, 2));
  const std::vector<float> x = RandomFloats(20 * 256, 7);
  for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kF32}) {
    for (const BackendChoice& choice : AvailableBackends()) {
      const std::unique_ptr<Backend> backend = Make(choice, mode, 2);
      for (const int64_t num_tokens : {1, 3, 20}) {
        std::vector<std::unique_ptr<Weight>> weights;
        std::vector<std::vector<float>> alone;
        std::vector<std::vector<float>> together;
        std::vector<MatMulArgs> args;
        for (const TestMatrix& matrix : matrices) {
          weights.push_back(std::move(backend->Prepare(matrix.stored())).value());
          alone.push_back(MatMul(*backend, *weights.back(), x, nullptr, num_tokens));
          together.emplace_back(alone.back().size());
        }
        for (size_t i = 0; i < weights.size(); ++i) {
          args.push_back({weights[i].get(), x.data(), nullptr, together[i].data(), num_tokens});
        }
        Scratch scratch;
        backend->MatMul(args, scratch);
        for (size_t i = 0; i < weights.size(); ++i) {
          EXPECT_TRUE(SameBits(alone[i], together[i])) << Name(choice) << " matrix " << i;
        }
      }
    }
  }
}

TEST(MatMulMatrix, LongPrefillIsCutIntoEqualPieces) {
  const TestMatrix matrix = TestMatrix::Turbo(16, 64, Transform::kHadamard, 20, 64, 1);
  constexpr int64_t kTokens = 1100;
  const std::vector<float> x = RandomFloats(kTokens * 64, 8);
  for (const ActivationMode mode : {ActivationMode::kInt8, ActivationMode::kF32}) {
    std::vector<float> expected;
    for (const BackendChoice& choice : AvailableBackends()) {
      const std::unique_ptr<Backend> backend = Make(choice, mode, 2);
      Result<std::unique_ptr<Weight>> weight = backend->Prepare(matrix.stored());
      const std::vector<float> y = MatMul(*backend, **weight, x, nullptr, kTokens);
      if (expected.empty()) expected = y;
      EXPECT_TRUE(SameBits(expected, y)) << Name(choice);
    }
  }
}

TEST(EmbedMatrix, EveryFormat) {
  std::vector<TestMatrix> tables;
  for (const int entries : {2, 3, 4, 8, 16}) {
    for (const Transform transform : {Transform::kNone, Transform::kHadamard}) {
      tables.push_back(TestMatrix::Turbo(entries, 32, transform, 37, 640, 1));
    }
  }
  for (const CodecInfo& codec : AllCodecs()) {
    if (codec.block_bytes == 0) continue;
    tables.push_back(
        TestMatrix::Block(codec.id, 37, codec.block_values == 1 ? 97 : 2 * codec.block_values, 2));
  }
  const std::vector<int32_t> ids = {0, 36, 17, 16, 0, 31};
  for (const TestMatrix& table : tables) {
    std::vector<float> expected;
    std::vector<BackendChoice> choices = AvailableBackends();
    std::reverse(choices.begin(), choices.end());  // ref first
    for (const BackendChoice& choice : choices) {
      const std::unique_ptr<Backend> backend = Make(choice, ActivationMode::kInt8, 2);
      Result<std::unique_ptr<Weight>> weight = backend->Prepare(table.stored());
      std::vector<float> out(ids.size() * static_cast<size_t>(table.stored().cols));
      backend->Embed({weight->get(), ids, 3.5f, out.data()});
      if (expected.empty()) expected = out;
      EXPECT_TRUE(SameBits(expected, out)) << FormatName(table.stored()) << " " << Name(choice);
    }
  }
}

// H x in f64 from the definition of the matrix.
std::vector<double> RotateF64(const std::vector<double>& x) {
  const HadamardBlock block = HadamardBlockFor(static_cast<int64_t>(x.size()));
  std::vector<double> y(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t base = i / block.size * block.size;
    const int64_t r = i - base;
    double sum = 0;
    for (int64_t c = 0; c < block.size; ++c) {
      const int sign2 = __builtin_popcountll((r % block.pow2) & (c % block.pow2)) % 2 == 0 ? 1 : -1;
      const int sign_m = block.m == 1 ? 1
                                      : HadamardEntry(block.m, static_cast<int>(r / block.pow2),
                                                      static_cast<int>(c / block.pow2));
      sum += sign2 * sign_m * x[base + c];
    }
    y[i] = sum / std::sqrt(static_cast<double>(block.size));
  }
  return y;
}

// Error of an f32 sum of K terms, as a share of the sum of their magnitudes.
constexpr double kF32Error = 2e-6;

TEST(RefAgainstF64, F32Mode) {
  std::vector<TestMatrix> matrices;
  for (const int64_t cols : {64, 192, 320, 448, 704}) {
    matrices.push_back(TestMatrix::Turbo(8, 64, Transform::kHadamard, 9, cols, 1));
    matrices.push_back(TestMatrix::Turbo(3, 32, Transform::kNone, 9, cols, 1));
    matrices.push_back(TestMatrix::Block(CodecId::kF16, 9, cols + 1, 1));
  }
  const std::unique_ptr<Backend> ref = Make({"ref", "scalar"}, ActivationMode::kF32, 1);
  for (const TestMatrix& matrix : matrices) {
    const StoredMatrix& stored = matrix.stored();
    const std::vector<float> x = RandomFloats(stored.cols, 9);
    std::vector<double> wide(x.begin(), x.end());
    if (stored.format.transform == Transform::kHadamard) {
      for (size_t i = 0; i < wide.size(); ++i) wide[i] *= stored.signs[i];
      wide = RotateF64(wide);
    }
    Result<std::unique_ptr<Weight>> weight = ref->Prepare(stored);
    const std::vector<float> y = MatMul(*ref, **weight, x, nullptr, 1);
    std::vector<float> w(x.size());
    for (int64_t n = 0; n < stored.rows; ++n) {
      DecodeRow(stored, n, 0, stored.cols, w.data());
      double sum = 0;
      double magnitude = 0;
      for (size_t k = 0; k < w.size(); ++k) {
        sum += w[k] * wide[k];
        magnitude += std::fabs(w[k] * wide[k]);
      }
      EXPECT_NEAR(y[n], sum, magnitude * kF32Error) << FormatName(stored) << " K=" << stored.cols;
    }
  }
}

TEST(RefAgainstF64, Int8Mode) {
  for (const Transform transform : {Transform::kNone, Transform::kHadamard}) {
    const TestMatrix matrix = TestMatrix::Turbo(16, 64, transform, 20, 704, 1);
    const StoredMatrix& stored = matrix.stored();
    const std::vector<float> x = RandomFloats(stored.cols, 9);
    const std::unique_ptr<Backend> ref = Make({"ref", "scalar"}, ActivationMode::kInt8, 1);
    Result<std::unique_ptr<Weight>> weight = ref->Prepare(stored);
    const std::vector<float> y = MatMul(*ref, **weight, x, nullptr, 1);

    const ref::ActivationRow row = ref::Prepare(stored, x.data(), /*int8=*/true);
    EXPECT_EQ(row.block, transform == Transform::kHadamard ? 256 : 64);
    const IntegerCodebook integers = FitIntegerCodebook(stored.codebook);
    std::vector<uint8_t> codes(x.size());
    double exact_error = 0;
    double exact_power = 0;
    for (int64_t n = 0; n < stored.rows; ++n) {
      TurboQuant::DecodeCodes(stored, n, 0, stored.cols, codes.data());
      double sum = 0;
      double magnitude = 0;
      double exact = 0;
      for (int64_t k = 0; k < stored.cols; ++k) {
        uint16_t bits;
        std::memcpy(&bits, stored.scales + (n * (stored.cols / 64) + k / 64) * 2, 2);
        const double scale = F16ToF32(bits);
        const double term = static_cast<double>(integers.step) * integers.integers[codes[k]] *
                            scale * (row.scale[k / row.block] * static_cast<double>(row.q[k]));
        sum += term;
        magnitude += std::fabs(term);
        exact += stored.codebook[codes[k]] * scale * row.x[k];
      }
      EXPECT_NEAR(y[n], sum, magnitude * kF32Error);
      exact_error += (y[n] - exact) * (y[n] - exact);
      exact_power += exact * exact;
    }
    // int8 activations and the integer codebook together: about 1 % in amplitude.
    EXPECT_LT(std::sqrt(exact_error / exact_power), 0.02);
  }
}

TEST(Prepare, RefusesWhatNoKernelMayTrust) {
  const TestMatrix good = TestMatrix::Turbo(8, 64, Transform::kHadamard, 4, 128, 1);
  const auto refuse = [&](const std::function<void(StoredMatrix&)>& damage, StatusCode code) {
    StoredMatrix bad = good.stored();
    damage(bad);
    for (const BackendChoice& choice : AvailableBackends()) {
      const std::unique_ptr<Backend> backend = Make(choice, ActivationMode::kInt8, 1);
      Result<std::unique_ptr<Weight>> weight = backend->Prepare(bad);
      ASSERT_FALSE(weight.ok());
      EXPECT_EQ(weight.status().code(), code) << weight.status().message();
    }
  };
  const std::vector<float> infinite = {-1.0f, INFINITY};
  const std::vector<float> five(5, 1.0f);
  const std::vector<float> ones(127, 1.0f);
  const std::vector<uint16_t> nan_scales(8, 0x7E00);
  refuse([](StoredMatrix& m) { m.rows = 0; }, StatusCode::kCorrupt);
  refuse([](StoredMatrix& m) { m.cols = int64_t{1} << 40; }, StatusCode::kCorrupt);
  refuse([](StoredMatrix& m) { m.cols = 96; }, StatusCode::kCorrupt);
  refuse([](StoredMatrix& m) { m.row_bytes = 4; }, StatusCode::kCorrupt);
  refuse([](StoredMatrix& m) { m.format.group = 48; }, StatusCode::kUnsupported);
  refuse([](StoredMatrix& m) { m.scales = nullptr; }, StatusCode::kCorrupt);
  refuse([&](StoredMatrix& m) { m.codebook = five; }, StatusCode::kUnsupported);
  refuse([&](StoredMatrix& m) { m.codebook = infinite; }, StatusCode::kCorrupt);
  refuse([&](StoredMatrix& m) { m.signs = ones; }, StatusCode::kCorrupt);
  refuse([&](StoredMatrix& m) { m.scales = reinterpret_cast<const std::byte*>(nan_scales.data()); },
         StatusCode::kCorrupt);
}

TEST(MakeBackend, NamesWhatIsThere) {
  ASSERT_FALSE(AvailableBackends().empty());
  EXPECT_EQ(AvailableBackends().back().backend, "ref");
  Result<std::unique_ptr<Backend>> best = MakeBackend("", {});
  ASSERT_TRUE(best.ok());
  EXPECT_EQ((*best)->name(), AvailableBackends().front().backend);
  EXPECT_EQ((*best)->isa(), AvailableBackends().front().isa);
  BackendOptions wrong_isa;
  wrong_isa.isa = "mmx";
  BackendOptions wrong_threads;
  wrong_threads.num_threads = -1;
  EXPECT_EQ(MakeBackend("gpu", {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeBackend("", wrong_isa).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeBackend("", wrong_threads).status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(MakeBackend("gpu", {}).status().message().find("ref/scalar"), std::string::npos);
}

TEST(Buffer, IsZeroAlignedAndMovable) {
  for (const bool huge : {false, true}) {
    for (const size_t bytes : {size_t{1}, size_t{4097}, size_t{5} << 20}) {
      Result<Buffer> made = Buffer::Allocate(bytes, huge);
      ASSERT_TRUE(made.ok());
      Buffer buffer = std::move(made).value();
      EXPECT_EQ(buffer.size(), bytes);
      EXPECT_EQ(reinterpret_cast<size_t>(buffer.data()) % 64, 0u);
      EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0});
      buffer.data()[bytes - 1] = std::byte{1};
      Buffer other;
      other = std::move(buffer);
      EXPECT_EQ(other.data()[bytes - 1], std::byte{1});
    }
  }
  EXPECT_EQ(Buffer::Allocate(size_t{1} << 60).status().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(Buffer::Allocate(0)->size(), 0u);
}

}  // namespace
}  // namespace tq
