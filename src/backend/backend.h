// Backend: memory and two dozen ops. Implementations live in backend/<name>/ and are named only
// in backend_list.inc; the model sees this interface alone. Ops trust their arguments (the model
// and the plan were validated before). Thread: one caller at a time per backend object; a backend
// object may serve several engines only if they take turns.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/ops.h"
#include "backend/ops_index.h"
#include "backend/ops_moe.h"
#include "backend/ops_recurrent.h"
#include "backend/ops_streams.h"
#include "base/status.h"
#include "codec/format.h"
#include "tensor/scratch.h"

namespace tq {

enum class ActivationMode : uint8_t {
  kInt8,  // fast mode: rotated activations in int8, integer codebooks
  kF32,   // parity mode: f32 arithmetic on the stored weights
};

// What a KV cache keeps: `wanted`, else nothing packed. Parity mode rounds nothing that stays
// exact.
inline KvSettings KvSettingsFor(ActivationMode mode, const std::optional<KvSettings>& wanted = {}) {
  const KvFormat exact = mode == ActivationMode::kF32 ? KvFormat::kF32 : KvFormat::kF16;
  KvSettings out = wanted.value_or(KvSettings(exact));
  out.exact = exact;
  return out;
}

struct BackendOptions {
  int num_threads = 0;  // 0: all CPUs of the process
  ActivationMode activations = ActivationMode::kInt8;
  std::string isa;  // "" = best; else a name from AvailableIsas()
};

// Zero-initialised memory, 64-byte aligned, committed when touched (so a large KV pool costs what
// is used).
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  // Errors: kOutOfMemory.
  static Result<Buffer> Allocate(size_t bytes, bool huge_pages = false);
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "ref", "cpu"
  virtual std::string_view isa() const = 0;   // "scalar", "avx2", "avxvnni", "avx512", "amx", "neon"
  virtual ActivationMode activations() const = 0;
  virtual int num_threads() const = 0;

  // For plans: a backend whose weights and scratch memory are as large as this one's, and which
  // does nothing else (sizing.h). Null: this backend has none.
  virtual std::unique_ptr<Backend> Sizing() const { return nullptr; }

  // Lays a stored matrix out for the kernels of this backend. The result does not point into
  // `stored` unless the backend says so in its header (then the source must outlive it). Errors:
  // kUnsupported (no kernel for the format), kCorrupt (NaN or inf in scales or codebook).
  virtual Result<std::unique_ptr<Weight>> Prepare(const StoredMatrix& stored) = 0;

  virtual void Embed(const EmbedArgs& args) = 0;
  // All of them read x before any y is written; grouped calls (q, k, v) share one pass of the
  // threads.
  virtual void MatMul(std::span<const MatMulArgs> args, Scratch& scratch) = 0;
  virtual void RmsNorm(const RmsNormArgs& args) = 0;
  virtual void LayerNorm(const LayerNormArgs& args) = 0;
  virtual void Rope(const RopeArgs& args) = 0;
  virtual void KvAppend(const KvAppendArgs& args) = 0;
  virtual void Attention(const AttentionArgs& args, Scratch& scratch) = 0;
  virtual void IndexSelect(const IndexSelectArgs& args, Scratch& scratch) = 0;
  virtual void CausalConv(const CausalConvArgs& args) = 0;
  virtual void DeltaRule(const DeltaRuleArgs& args) = 0;
  virtual void MambaScan(const MambaScanArgs& args) = 0;
  virtual void Route(const RouteArgs& args) = 0;
  virtual void MoeCombine(const MoeCombineArgs& args) = 0;
  virtual void Glu(const GluArgs& args) = 0;
  virtual void Map(const MapArgs& args) = 0;
  virtual void ScaleRows(const ScaleRowsArgs& args) = 0;
  virtual void CopyRows(const CopyRowsArgs& args) = 0;
  virtual void Add(const AddArgs& args) = 0;
  virtual void Softcap(const SoftcapArgs& args) = 0;
  virtual void ResidualMix(const ResidualMixArgs& args) = 0;
  virtual void StreamMean(const StreamMeanArgs& args) = 0;
  virtual void StreamInject(const StreamInjectArgs& args) = 0;
  virtual void StreamGate(const StreamGateArgs& args) = 0;
};

// Every way to compute that this machine has, best first: {"cpu", "avx512"}, {"cpu", "avx2"},
// {"ref", "scalar"}.
struct BackendChoice {
  std::string backend;
  std::string isa;
};
std::vector<BackendChoice> AvailableBackends();

// name: "cpu", "ref" or "" (the best available). Errors: kInvalidArgument naming what is available.
Result<std::unique_ptr<Backend>> MakeBackend(std::string_view name, const BackendOptions& options);

}  // namespace tq
