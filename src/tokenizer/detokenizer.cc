#include "tokenizer/tokenizer.h"

namespace tq {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special)
    : stream_(tokenizer.StartDecode(skip_special)) {}

std::string Detokenizer::Push(int32_t id) {
  std::string out;
  stream_->Push(id, &out);
  return out;
}

std::string Detokenizer::Finish() {
  std::string out;
  stream_->Finish(&out);
  return out;
}

}  // namespace tq
