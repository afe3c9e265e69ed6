// Tensors of a GGUF model as Hugging Face tensors: names, shapes, and values that are stored
// differently. Checks that exactly the architecture's tensors are there.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weights/gguf_arch.h"
#include "weights/source.h"

namespace tq {

using GgufTensorMap = std::map<std::string, GgufTensorInfo, std::less<>>;

// A tensor whose values differ from the stored ones. Its bytes are allocated at open and filled
// when somebody asks for tensors, so that opening reads headers only.
struct GgufChangedTensor {
  GgufTensorInfo stored;
  GgufChange change = GgufChange::kNone;
  int64_t head_dim = 0;
  std::unique_ptr<std::byte[]> values;
  void Fill() const;
};

struct GgufTensors {
  std::vector<SourceTensor> tensors;  // sorted by name
  std::vector<GgufChangedTensor> changed;
};

// `stored` by GGUF name, without those that became part of `model`. Adds to model.config what the
// presence of tensors says (tie_word_embeddings, attention_bias, ...). Errors: kNotFound, kCorrupt,
// kUnsupported, kOutOfMemory; by GGUF tensor name.
Result<GgufTensors> TranslateGgufTensors(GgufTensorMap stored, const GgufArch& arch,
                                         GgufModel& model, const std::string& where);

// All values of a stored tensor as f32. Errors: kUnsupported without a codec for its type.
Result<std::vector<float>> ReadGgufFloats(const GgufTensorInfo& info, const std::string& where);

}  // namespace tq
