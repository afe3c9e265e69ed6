#include "quantize/documents.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "base/file.h"

namespace tq {

Status CopyDocuments(const WeightSource& source, const std::string& folder) {
  for (const std::string& name : source.DocumentNames()) {
    if (name == "config.json" || name.ends_with(".safetensors.index.json")) continue;
    TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument(name));
    if (const size_t slash = name.find('/'); slash != std::string::npos) {
      std::error_code error;
      std::filesystem::create_directory(folder + "/" + name.substr(0, slash), error);
    }
    TQ_RETURN_IF_ERROR(WriteFile(folder + "/" + name, text));
  }
  return Status::Ok();
}

}  // namespace tq
