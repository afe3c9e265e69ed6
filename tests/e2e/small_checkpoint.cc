#include "e2e/small_checkpoint.h"

#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "support/byte_tokenizer.h"

namespace tq::test {

void WriteSmallCheckpoint(const std::string& folder) {
  namespace fs = std::filesystem;
  fs::create_directory(folder);
  const std::string model = TQ_TEST_DATA "/models/llama";
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::copy_file(model + "/" + name, folder + "/" + name);
  }
  TQ_CHECK(WriteFile(folder + "/tokenizer.json", ByteTokenizerJson()).ok());
  TQ_CHECK(WriteFile(folder + "/tokenizer_config.json", ByteTokenizerConfig()).ok());
}

}  // namespace tq::test
