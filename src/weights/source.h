// WeightSource: one checkpoint as named tensors over mapped bytes plus its JSON documents, whatever
// the container. Containers translate to Hugging Face tensor names and config.json keys, so nothing
// above notices which one it was. Read-only, immutable, any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "codec/format.h"
#include "tensor/view.h"
#include "weights/checkpoint_facts.h"

namespace tq {

// A tensor as stored. Plain ones have a dtype; block formats (GGUF) have a codec and no dtype of
// their own (dtype is then kU8 and meaningless). Row-major, outermost dimension first.
struct SourceTensor {
  std::string name;
  Shape shape;  // logical, in elements
  DType dtype = DType::kU8;
  CodecId codec = CodecId::kF32;     // valid when is_float_like
  bool is_float_like = false;        // f32, f16, bf16 or a block format: DecodeRow works on it
  std::span<const std::byte> bytes;  // lives as long as the source
  // Parts of a fused tensor whose values are not one after another: bytes from one row, and from
  // one value of a row, to the next; 0: densely. `bytes` reaches from the first to the last value.
  int64_t row_pitch = 0;
  int64_t value_pitch = 0;
  bool dense() const { return row_pitch == 0 && value_pitch == 0; }
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const std::string& path() const = 0;
  virtual std::string_view container() const = 0;  // "safetensors", "gguf"

  // Sorted by name. Names are Hugging Face's.
  virtual const std::vector<SourceTensor>& tensors() const = 0;
  const SourceTensor* Find(std::string_view name) const;
  // What only the tensors tell. Here: of a container that stores norms as Hugging Face does.
  virtual CheckpointFacts facts() const;

  // "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", ...: the
  // file's or the translated content. Errors: kNotFound, kCorrupt.
  virtual Result<std::string> ReadDocument(const std::string& name) const = 0;
  // Names of the documents that exist (for a converter that copies them).
  virtual std::vector<std::string> DocumentNames() const = 0;

  // Keeps the bytes of every tensor where they are, whatever becomes of the source. Null: they live
  // as long as the source only.
  virtual std::shared_ptr<const void> Mapping() const { return nullptr; }

  // The bytes of `tensor` were used and will not be needed soon.
  virtual void DropPages(const SourceTensor& tensor) const = 0;
};

// A folder in Hugging Face layout, or a .gguf file. Opening reads headers only and checks them:
// every range in its file, no overlaps, no wrapped sizes, no duplicate names, all shards there.
// Errors: kNotFound, kCorrupt, kUnsupported; messages name file, tensor, expected, found.
Result<std::unique_ptr<WeightSource>> OpenSource(const std::string& path);

// A [rows, cols] matrix over a float-like 2-D tensor (or one [n] vector as a single row). Requires:
// the values of a row are dense.
StoredMatrix MatrixView(const SourceTensor& tensor);
// Errors: kCorrupt when a float-like tensor holds NaN or infinity. Runs at memory speed.
Status CheckFinite(const SourceTensor& tensor);
// The tensor with its values one after another: itself, or a copy in `storage`. Requires: elements
// of a dtype, not blocks, when it is not dense.
SourceTensor DenseTensor(const SourceTensor& tensor, std::vector<std::byte>& storage);
// All values as f32. Errors: kUnsupported for a tensor that is not float-like.
Result<std::vector<float>> ReadFloats(const SourceTensor& tensor);

}  // namespace tq
