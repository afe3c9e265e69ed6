// Answers of /v1/chat/completions: one object, or a stream of chunks.
#pragma once

#include <memory>
#include <string>

#include "server/generation.h"

namespace tq::server {

struct ChatForm {
  std::string model;
  size_t num_answers = 1;
  bool stream = false;
  bool include_usage = false;  // stream: a last chunk with the usage
  bool logprobs = false;
};

std::unique_ptr<AnswerWriter> MakeChatWriter(const Call& call, const ChatForm& form);

}  // namespace tq::server
