// Any bytes as a safetensors file: refused with a Status, or every tensor can be read.
#include <cstddef>
#include <cstdint>

#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = tq::ParseSafetensors(bytes, "fuzz.safetensors");
  if (!file.ok()) return 0;
  for (const tq::SourceTensor& tensor : file->tensors) {
    if (tensor.is_float_like) (void)tq::ReadFloats(tensor);
  }
  return 0;
}
