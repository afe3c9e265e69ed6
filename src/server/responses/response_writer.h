// Answers of /v1/responses: one object, or its stream of events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/messages.h"
#include "server/generation.h"

namespace tq::server {

struct ResponseForm {
  std::string id;
  bool stream = false;
  bool store = true;
  OrderedJson echo;   // fields of the request that come back: model, tools, temperature, ...
  OrderedJson items;  // the conversation so far, with the request's input
  OrderedJson input;  // the request's items
  std::vector<ToolSpec> tools;
};

std::unique_ptr<AnswerWriter> MakeResponseWriter(const Call& call, ResponseForm form);

}  // namespace tq::server
