#include "backend/cpu/cpu_sizing.h"

#include "backend/cpu/cpu_attention.h"
#include "backend/cpu/cpu_matmul.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/sizing.h"

namespace tq {
namespace {

class CpuSizing : public SizingBackend {
 public:
  CpuSizing(Isa isa, ActivationMode activations, int num_threads)
      : isa_(isa),
        activations_(activations),
        num_threads_(num_threads),
        kernels_{GetFloatOps(isa), GetIntOps(isa)} {}

  std::string_view name() const override { return "cpu"; }
  std::string_view isa() const override { return IsaName(isa_); }
  ActivationMode activations() const override { return activations_; }
  int num_threads() const override { return num_threads_; }

  Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) override {
    return std::unique_ptr<Weight>(CpuWeight::MakeSized(stored, activations_, arena_));
  }
  void MatMul(std::span<const MatMulArgs> args, Scratch& scratch) override {
    ReserveMatMul(kernels_, args, num_threads_, scratch);
  }
  void Attention(const AttentionArgs& args, Scratch& scratch) override {
    ReserveAttention(kernels_.floats, activations_ == ActivationMode::kInt8, args, num_threads_,
                     scratch);
  }
  void IndexSelect(const IndexSelectArgs& args, Scratch& scratch) override {
    ReserveIndexSelect(args, num_threads_, scratch);
  }

 private:
  Isa isa_;
  ActivationMode activations_;
  int num_threads_;
  CpuKernels kernels_;
  WeightArena arena_;  // of signs alone
};

}  // namespace

std::unique_ptr<Backend> MakeCpuSizing(Isa isa, ActivationMode activations, int num_threads) {
  return std::make_unique<CpuSizing>(isa, activations, num_threads);
}

}  // namespace tq
