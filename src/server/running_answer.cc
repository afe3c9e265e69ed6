#include "server/running_answer.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "server/ids.h"

namespace tq::server {

std::string_view OutcomeName(const AnswerEnd& end) {
  switch (end.reason) {
    case AnswerEnd::Reason::kLength:
      return "length";
    case AnswerEnd::Reason::kToolCalls:
      return "tool_calls";
    default:
      return "stop";
  }
}

RunningAnswer::RunningAnswer(const Call& call, const AnswerPlan& plan,
                             std::shared_ptr<TokenStream> stream)
    : call_(call),
      plan_(plan),
      stream_(std::move(stream)),
      text_(*call.model->text().tokenizer, plan.stops, plan.parser ? &*plan.parser : nullptr,
            plan.tools, plan.request.num_logprobs >= 0) {
  answer_.role = ChatRole::kAssistant;
}

bool RunningAnswer::Take(std::vector<AnswerEvent>& events) {
  TokenLogprobs logprobs;
  const std::optional<int32_t> id = stream_->TryNext(&logprobs);
  if (!id) return false;
  if (stopped_) return true;
  const size_t first = events.size();
  ids_.push_back(*id);
  text_.Push(*id, logprobs, events);
  Finish(first, events);
  stopped_ = stopped_ || text_.stopped();
  if (stopped_) stream_->Cancel();  // its end comes soon, with the final counts
  return true;
}

void RunningAnswer::Finish(size_t first, std::vector<AnswerEvent>& events) {
  for (size_t i = first; i < events.size(); ++i) {
    OutputEvent& event = events[i].event;
    if (event.kind == OutputEvent::Kind::kToolBegin) {
      if (plan_.one_call && !answer_.tool_calls.empty()) {
        events.resize(i);
        stopped_ = cut_ = true;
        return;
      }
      if (event.tool_id.empty()) {
        event.tool_id = NewId(call_.style == ApiStyle::kAnthropic ? "toolu_" : "call_");
      }
    }
    AddEvent(event, answer_);
  }
}

AnswerEnd RunningAnswer::End(std::vector<AnswerEvent>& events) {
  ended_ = true;
  if (!cut_) {
    const size_t first = events.size();
    text_.Finish(events);
    Finish(first, events);
  }
  AnswerEnd end{.stats = stream_->stats(), .reasoning_tokens = text_.reasoning_tokens()};
  if (!answer_.tool_calls.empty()) {
    end.reason = AnswerEnd::Reason::kToolCalls;
  } else if (text_.stopped()) {
    end.reason = AnswerEnd::Reason::kStopString;
    end.stop_string = text_.stop_string();
  } else if (stream_->finish_reason() == FinishReason::kLength) {
    end.reason = AnswerEnd::Reason::kLength;
  }
  Remember();
  return end;
}

void RunningAnswer::Remember() {
  // A text that was cut is not what was generated.
  if (plan_.history.empty() || stopped_ || ids_.empty()) return;
  StoredTurn turn;
  turn.turn = plan_.rendered.Turn(text_.all(), 0);
  turn.reasoning = answer_.reasoning;
  turn.ids = ids_;
  call_.model->turns().Put(plan_.history, answer_, std::move(turn));
}

void RunningAnswer::Close(std::string_view outcome, double seconds) {
  ended_ = true;
  const GenerateStats stats = stream_->stats();
  call_.service.metrics().CountAnswer(call_.model->name(), outcome, stats);
  call_.service.log().Write(LogLevel::kInfo, "answer",
                            {{"id", call_.request_id},
                             {"model", call_.model->name()},
                             {"outcome", std::string(outcome)},
                             {"prompt_tokens", fmt::to_string(stats.prompt_tokens)},
                             {"cached_tokens", fmt::to_string(stats.cached_tokens)},
                             {"generated_tokens", fmt::to_string(ids_.size())},
                             {"queue_s", fmt::format("{:.3f}", stats.queue_seconds)},
                             {"prefill_s", fmt::format("{:.3f}", stats.prefill_seconds)},
                             {"decode_s", fmt::format("{:.3f}", stats.decode_seconds)},
                             {"total_s", fmt::format("{:.3f}", seconds)}});
}

}  // namespace tq::server
