// Reader of one GGUF file (versions 2 and 3, little-endian): metadata and tensor infos over mapped
// bytes. Knows nothing of models; gguf_source.cc translates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/view.h"
#include "weights/gguf_types.h"
#include "weights/gguf_value.h"

namespace tq {

struct GgufTensorInfo {
  std::string name;
  Shape shape;  // outermost first: the file's dims reversed
  const GgufTensorType* type = nullptr;
  uint64_t offset = 0;  // from the data section
  std::span<const std::byte> bytes;
};

struct GgufFile {
  uint32_t version = 0;
  uint64_t alignment = 32;
  std::map<std::string, GgufValue, std::less<>> keys;
  std::vector<GgufTensorInfo> tensors;  // in file order
};

// `bytes` is the whole file, `where` names it in messages. Counts and lengths are checked against
// the bytes that are left before anything is reserved. Order of infos and gaps between tensors are
// free. Errors: kCorrupt, kUnsupported (version, big-endian, tensor or value type); keys and
// tensors by name.
Result<GgufFile> ParseGguf(std::span<const std::byte> bytes, const std::string& where);

}  // namespace tq
