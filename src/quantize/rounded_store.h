// RoundedStore: codes and scales of matrices that were rounded before the shards are written, in
// files of their own beside the shards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "weights/safetensors.h"

namespace tq {

// A TurboQuant matrix, rows after rows.
struct RoundedMatrix {
  std::vector<uint32_t> words;
  std::vector<uint16_t> scales;  // f16
};

class RoundedStore {
 public:
  // Codes of one matrix as they lie in the file.
  struct View {
    std::span<const std::byte> words;
    std::span<const std::byte> scales;
  };

  // A file with these matrices, by path. Errors: kIo.
  static Status Write(const std::string& file,
                      const std::map<std::string, RoundedMatrix>& matrices);
  // Adds the matrices of such a file. Errors: kIo, kCorrupt.
  Status Open(const std::string& file);

  // Null when there is none of that path.
  const View* Find(const std::string& path) const;

 private:
  struct File {
    std::shared_ptr<const MappedFile> mapped;
    SafetensorsFile tensors;
  };
  std::vector<File> files_;
  std::map<std::string, View> views_;
};

}  // namespace tq
