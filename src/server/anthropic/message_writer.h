// Answers of /v1/messages: one message, or its stream of events.
#pragma once

#include <memory>
#include <string>

#include "server/generation.h"

namespace tq::server {

struct MessageForm {
  std::string model;
  bool stream = false;
  int64_t prompt_tokens = 0;
};

std::unique_ptr<AnswerWriter> MakeMessageWriter(const Call& call, const MessageForm& form);

}  // namespace tq::server
