// Reader of one safetensors file: u64 header length (little-endian), JSON header, tensor bytes.
// Parses mapped bytes in place; folders, shards and documents are checkpoint_folder.cc.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "weights/source.h"

namespace tq {

struct SafetensorsFile {
  std::vector<SourceTensor> tensors;  // sorted by name; bytes point into the parsed range
  std::map<std::string, std::string> metadata;
};

// `bytes` is the whole file, `where` names it in messages. Tensors must cover the data section
// exactly, without holes or overlaps, as the format demands; their alignment is free. Tensors
// without elements are legal. Errors: kCorrupt, kUnsupported (a dtype this build does not know).
Result<SafetensorsFile> ParseSafetensors(std::span<const std::byte> bytes,
                                         const std::string& where);

}  // namespace tq
