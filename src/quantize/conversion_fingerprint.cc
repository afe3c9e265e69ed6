#include "quantize/conversion_fingerprint.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tq {
namespace {

// Fields are ended by a byte that no text holds, so that they cannot run into each other.
class Description {
 public:
  template <typename T>
  void Add(const T& value) {
    text_ += fmt::format("{}", value);
    text_ += '\0';
  }
  std::string Hash() const {
    return fmt::format("{:016x}", XXH3_64bits(text_.data(), text_.size()));
  }

 private:
  std::string text_;
};

}  // namespace

std::string ConversionFingerprint(const WeightSource& source, const std::vector<ConvertItem>& items,
                                  const std::string& output_config, const HessianFile* calibration,
                                  const ConvertOptions& options) {
  Description all;
  all.Add(CheckpointFingerprint(source));
  all.Add(output_config);
  all.Add(options.max_shard_bytes);
  all.Add(options.sequential != nullptr);
  if (calibration != nullptr) {
    all.Add(calibration->path());
    all.Add(calibration->fingerprint());
    all.Add(calibration->num_tokens());
  }
  for (const ConvertItem& item : items) {
    all.Add(item.path);
    for (const std::string& name : item.sources) all.Add(name);
    for (const SafetensorsWriter::Tensor& tensor : item.outputs) {
      all.Add(tensor.name);
      all.Add(DTypeName(tensor.dtype));
      all.Add(ShapeString(tensor.shape));
    }
    all.Add(item.spec.codebook_entries);
    all.Add(item.spec.group);
    all.Add(item.spec.rotate);
    all.Add(item.spec.seed);
    all.Add(item.spec.search_scale);
    all.Add(item.quantize);
    all.Add(item.measured);
    all.Add(item.qjl);
    all.Add(item.affine ? item.affine->bits : 0);
    all.Add(item.affine ? item.affine->group : 0);
    all.Add(item.fold_one);
    all.Add(item.decode);
    all.Add(item.file);
  }
  return all.Hash();
}

}  // namespace tq
