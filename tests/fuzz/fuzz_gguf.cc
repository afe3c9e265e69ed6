// Any bytes as a GGUF file: refused with a Status, or its tensors and documents can be read.
#include <cstddef>
#include <cstdint>
#include <string>

#include <unistd.h>

#include "base/file.h"
#include "weights/gguf_container.h"
#include "weights/gguf_documents.h"
#include "weights/gguf_translate.h"
#include "weights/source.h"

namespace {

// Translation works on files: one per process, overwritten by every input.
void OpenAsModel(std::string_view content) {
  static const std::string path = "/tmp/fuzz_gguf_" + std::to_string(::getpid()) + ".gguf";
  if (!tq::WriteFile(path, content).ok()) return;
  const auto source = tq::OpenSource(path);
  if (!source.ok()) return;
  for (const tq::SourceTensor& tensor : (*source)->tensors()) (void)tq::ReadFloats(tensor);
  for (const std::string& name : (*source)->DocumentNames()) {
    (void)(*source)->ReadDocument(name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = tq::ParseGguf(std::as_bytes(std::span(data, size)), "fuzz.gguf");
  if (!file.ok()) return 0;
  for (const tq::GgufTensorInfo& info : file->tensors) (void)tq::ReadGgufFloats(info, "fuzz.gguf");
  (void)tq::GgufTokenizerJson(*file, "fuzz.gguf");
  OpenAsModel({reinterpret_cast<const char*>(data), size});
  return 0;
}
