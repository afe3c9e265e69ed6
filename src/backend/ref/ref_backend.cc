#include "backend/ref/ref_backend.h"

#include <utility>

#include "backend/matrix_check.h"
#include "backend/ref/ref_ops.h"
#include "backend/route.h"
#include "backend/sizing.h"
#include "base/threads.h"

namespace tq {
namespace {

// A weight's size alone.
class RefSizedWeight : public Weight {
 public:
  explicit RefSizedWeight(const StoredMatrix& stored)
      : Weight(stored.format, stored.rows, stored.cols), bytes_(ref::RefWeight::BytesOf(stored)) {}
  int64_t bytes() const override { return bytes_; }
  const char* kernel() const override { return "ref"; }

 private:
  int64_t bytes_;
};

class RefSizing : public SizingBackend {
 public:
  RefSizing(ActivationMode activations, int num_threads)
      : activations_(activations), num_threads_(num_threads) {}
  std::string_view name() const override { return "ref"; }
  std::string_view isa() const override { return "scalar"; }
  ActivationMode activations() const override { return activations_; }
  int num_threads() const override { return num_threads_; }
  Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) override {
    return std::unique_ptr<Weight>(std::make_unique<RefSizedWeight>(stored));
  }

 private:
  ActivationMode activations_;
  int num_threads_;
};

class RefBackend : public Backend {
 public:
  explicit RefBackend(const BackendOptions& options)
      : activations_(options.activations), pool_(options.num_threads) {}

  std::string_view name() const override { return "ref"; }
  std::string_view isa() const override { return "scalar"; }
  ActivationMode activations() const override { return activations_; }
  int num_threads() const override { return pool_.num_threads(); }

  std::unique_ptr<Backend> Sizing() const override {
    return std::make_unique<RefSizing>(activations_, num_threads());
  }

  Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) override {
    TQ_RETURN_IF_ERROR(CheckStoredMatrix(stored));
    return std::unique_ptr<Weight>(std::make_unique<ref::RefWeight>(stored));
  }

  void Embed(const EmbedArgs& args) override {
    ForEach(static_cast<int64_t>(args.ids.size()),
            [&](int64_t token) { ref::EmbedRow(args, token); });
  }

  void MatMul(std::span<const MatMulArgs> args, Scratch&) override {
    std::vector<std::vector<ref::ActivationRow>> prepared;
    for (const MatMulArgs& one : args) {
      const StoredMatrix& matrix = static_cast<const ref::RefWeight&>(*one.weight).matrix();
      std::vector<ref::ActivationRow>& rows = prepared.emplace_back();
      rows.resize(static_cast<size_t>(one.num_tokens));
      ForEach(one.num_tokens, [&](int64_t t) {
        rows[t] =
            ref::Prepare(matrix, one.x + t * matrix.cols, activations_ == ActivationMode::kInt8);
      });
    }
    for (size_t i = 0; i < args.size(); ++i) {
      pool_.ParallelFor(args[i].weight->rows(), 1, [&](int64_t begin, int64_t end, int) {
        ref::MatMul(args[i], prepared[i], begin, end);
      });
    }
  }

  void RmsNorm(const RmsNormArgs& args) override {
    ForEach(args.num_rows, [&](int64_t row) { ref::RmsNormRow(args, row); });
  }
  void LayerNorm(const LayerNormArgs& args) override {
    ForEach(args.num_rows, [&](int64_t row) { ref::LayerNormRow(args, row); });
  }
  void Rope(const RopeArgs& args) override {
    ForEach(args.num_tokens, [&](int64_t token) { ref::RopeToken(args, token); });
  }
  void KvAppend(const KvAppendArgs& args) override {
    ref::KvAppend(args, rotations_.OfKeys(args.layout), rotations_.OfValues(args.layout));
  }

  void Attention(const AttentionArgs& args, Scratch&) override {
    const KvRotation& k_rotation = rotations_.OfKeys(args.layout);
    const KvRotation& v_rotation = rotations_.OfValues(args.layout);
    const bool integers = activations_ == ActivationMode::kInt8;
    for (const SequencePlan& sequence : args.plan->sequences) {
      ForEach(sequence.num_tokens, [&](int64_t i) {
        ref::AttentionToken(args, k_rotation, v_rotation, integers, sequence,
                            sequence.first_token + i);
      });
    }
  }
  void IndexSelect(const IndexSelectArgs& args, Scratch&) override {
    for (const SequencePlan& sequence : args.plan->sequences) {
      ForEach(sequence.num_tokens,
              [&](int64_t i) { ref::IndexSelectToken(args, sequence, sequence.first_token + i); });
    }
  }

  void CausalConv(const CausalConvArgs& args) override {
    const std::vector<SequencePlan>& sequences = args.plan->sequences;
    ForEach(static_cast<int64_t>(sequences.size()),
            [&](int64_t s) { ref::CausalConv(args, sequences[s]); });
  }
  void DeltaRule(const DeltaRuleArgs& args) override {
    for (const SequencePlan& sequence : args.plan->sequences) {
      ForEach(args.num_v_heads, [&](int64_t head) { ref::DeltaRuleHead(args, sequence, head); });
    }
  }
  void MambaScan(const MambaScanArgs& args) override {
    for (const SequencePlan& sequence : args.plan->sequences) {
      ForEach(args.num_heads, [&](int64_t head) { ref::MambaScanHead(args, sequence, head); });
    }
  }

  void Route(const RouteArgs& args) override {
    ForEach(args.num_tokens, [&](int64_t token) {
      std::vector<float> work(static_cast<size_t>(RouteWork(args.rule)));
      RouteToken(args, token, work.data());
    });
  }
  void MoeCombine(const MoeCombineArgs& args) override {
    ForEach(args.num_tokens, [&](int64_t token) { ref::MoeCombineToken(args, token); });
  }

  void Glu(const GluArgs& args) override {
    pool_.ParallelFor(args.n, 1024,
                      [&](int64_t begin, int64_t end, int) { ref::Glu(args, begin, end); });
  }
  void Map(const MapArgs& args) override {
    ForEach(args.num_rows, [&](int64_t row) { ref::MapRow(args, row); });
  }
  void ScaleRows(const ScaleRowsArgs& args) override {
    ForEach(args.num_rows, [&](int64_t row) { ref::ScaleRow(args, row); });
  }
  void CopyRows(const CopyRowsArgs& args) override {
    ForEach(args.num_rows, [&](int64_t row) { ref::CopyRow(args, row); });
  }
  void Add(const AddArgs& args) override {
    for (int64_t i = 0; i < args.n; ++i) args.y[i] = args.y[i] + args.x[i];
  }
  void Softcap(const SoftcapArgs& args) override {
    pool_.ParallelFor(args.n, 1024,
                      [&](int64_t begin, int64_t end, int) { ref::Softcap(args, begin, end); });
  }

  void ResidualMix(const ResidualMixArgs& args) override {
    ForEach(args.num_tokens, [&](int64_t token) { ref::ResidualMixToken(args, token); });
  }
  void StreamMean(const StreamMeanArgs& args) override {
    ForEach(args.num_tokens, [&](int64_t token) { ref::StreamMeanToken(args, token); });
  }
  void StreamInject(const StreamInjectArgs& args) override {
    ForEach(args.num_tokens, [&](int64_t token) { ref::StreamInjectToken(args, token); });
  }
  void StreamGate(const StreamGateArgs& args) override {
    ForEach(args.num_tokens, [&](int64_t token) { ref::StreamGateToken(args, token); });
  }

 private:
  template <typename Body>
  void ForEach(int64_t n, const Body& body) {
    pool_.ParallelFor(n, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }

  ActivationMode activations_;
  ThreadPool pool_;
  KvRotations rotations_;
};

}  // namespace

Result<std::unique_ptr<Backend>> MakeRefBackend(const BackendOptions& options) {
  return std::unique_ptr<Backend>(std::make_unique<RefBackend>(options));
}

std::vector<std::string> RefIsas() { return {"scalar"}; }

}  // namespace tq
