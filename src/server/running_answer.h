// RunningAnswer: one of the answers to a request: takes its ids from the engine, and says what they
// mean and how they end. Thread: the exchange's.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "chat/messages.h"
#include "engine/token_stream.h"
#include "server/answer_text.h"
#include "server/generation.h"

namespace tq::server {

class RunningAnswer {
 public:
  // The call's service and the plan outlive it.
  RunningAnswer(const Call& call, const AnswerPlan& plan, std::shared_ptr<TokenStream> stream);

  TokenStream& stream() { return *stream_; }
  // Takes an id, if there is one, and appends what it makes certain.
  bool Take(std::vector<AnswerEvent>& events);
  // Requires: stream().at_end(), and no error. Appends what was held back.
  AnswerEnd End(std::vector<AnswerEvent>& events);
  // Cut short here: by a stop string, or by a second call where one is allowed.
  bool stopped() const { return stopped_; }
  bool ended() const { return ended_; }
  // Counts it, and writes it to the log.
  void Close(std::string_view outcome, double seconds);

 private:
  // Completes and cuts the events from `first` on.
  void Finish(size_t first, std::vector<AnswerEvent>& events);
  void Remember();

  const Call& call_;
  const AnswerPlan& plan_;
  std::shared_ptr<TokenStream> stream_;
  AnswerText text_;
  ChatMessage answer_;
  std::vector<int32_t> ids_;
  bool stopped_ = false;  // what still comes does not count
  bool cut_ = false;      // by a second call
  bool ended_ = false;
};

}  // namespace tq::server
