#include "quantize/documents.h"

#include "base/file.h"

namespace tq {

Status CopyDocuments(const WeightSource& source, const std::string& folder) {
  for (const std::string& name : source.DocumentNames()) {
    if (name == "config.json" || name.ends_with(".safetensors.index.json")) continue;
    TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument(name));
    TQ_RETURN_IF_ERROR(WriteFile(folder + "/" + name, text));
  }
  return Status::Ok();
}

}  // namespace tq
