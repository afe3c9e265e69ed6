#include "server/generation.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "chat/stop_strings.h"
#include "engine/engine.h"
#include "server/answer_text.h"
#include "server/ids.h"

namespace tq::server {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Brings the engine's call to the exchange, as long as somebody waits there. What the engine's
// thread holds on to is this alone, so that nothing else ever ends on it.
class Bell {
 public:
  Bell(Exchange* exchange, std::function<void()> answer)
      : exchange_(exchange), answer_(std::move(answer)) {}
  void Ring() {
    const std::lock_guard lock(mutex_);
    if (exchange_ != nullptr) exchange_->Post(answer_);
  }
  void Silence() {
    const std::lock_guard lock(mutex_);
    exchange_ = nullptr;
  }

 private:
  std::mutex mutex_;  // guards exchange_
  Exchange* exchange_;
  const std::function<void()> answer_;
};

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

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(const Call& call, AnswerPlan plan, std::unique_ptr<AnswerWriter> writer)
      : call_(call),
        plan_(std::move(plan)),
        writer_(std::move(writer)),
        text_(*call.service.text().tokenizer, std::move(plan_.stops),
              plan_.parser ? &*plan_.parser : nullptr, plan_.tools) {}
  ~Generation() {
    if (bell_ != nullptr) bell_->Silence();
  }

  void Start(std::shared_ptr<TokenStream> stream);
  // Ends the answer early; any thread.
  std::function<void()> Canceller();

 private:
  // Takes what the engine has, as long as the client keeps up.
  void Pump();
  void Accept(int32_t id);
  void Deliver();
  void Finish();
  void Remember();
  void Fail(const ApiError& error);
  void ClientLeft();
  void Tick();
  void ArmTimer();
  void Close(std::string_view outcome);

  Call call_;
  AnswerPlan plan_;
  std::unique_ptr<AnswerWriter> writer_;
  AnswerText text_;
  std::vector<OutputEvent> events_;  // reused
  ChatMessage answer_;
  std::vector<int32_t> ids_;
  std::shared_ptr<TokenStream> stream_;
  std::shared_ptr<Bell> bell_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_write_ = start_;
  bool stopped_ = false;  // by a stop string: what still comes does not count
  bool done_ = false;
};

void Generation::Start(std::shared_ptr<TokenStream> stream) {
  stream_ = std::move(stream);
  answer_.role = ChatRole::kAssistant;
  const std::weak_ptr<Generation> weak = weak_from_this();
  const auto pump = [weak] {
    if (const auto self = weak.lock()) self->Pump();
  };
  // The exchange keeps this alive until its end.
  call_.exchange->OnClosed([self = shared_from_this()] { self->ClientLeft(); });
  call_.exchange->OnWritable(pump);
  writer_->Begin();
  if (done_) return;
  bell_ = std::make_shared<Bell>(call_.exchange.get(), pump);
  stream_->SetListener([bell = bell_] { bell->Ring(); });
  ArmTimer();
}

std::function<void()> Generation::Canceller() {
  const std::weak_ptr<Generation> weak = weak_from_this();
  return [weak] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->call_.exchange->Post([weak] {
      const auto alive = weak.lock();
      if (alive == nullptr) return;
      alive->Fail({409, "invalid_request_error", "cancelled", "", "the answer was cancelled"});
    });
  };
}

void Generation::Pump() {
  constexpr int kMostAtOnce = 256;  // others wait for this thread
  for (int i = 0; !done_ && call_.exchange->writable(); ++i) {
    if (i == kMostAtOnce) {
      bell_->Ring();
      return;
    }
    const std::optional<int32_t> id = stream_->TryNext();
    if (!id) break;
    if (!stopped_) Accept(*id);
  }
  if (!done_ && stream_->at_end()) Finish();
}

void Generation::Accept(int32_t id) {
  ids_.push_back(id);
  text_.Push(id, events_);
  Deliver();
  if (!text_.stopped()) return;
  stopped_ = true;
  stream_->Cancel();  // its end comes soon, with the final counts
}

void Generation::Deliver() {
  for (OutputEvent& event : events_) {
    const bool needs_id = event.kind == OutputEvent::Kind::kToolBegin && event.tool_id.empty();
    if (needs_id) event.tool_id = NewId(call_.style == ApiStyle::kAnthropic ? "toolu_" : "call_");
    AppendEvent(event, answer_);
    writer_->Add(event);
  }
  if (!events_.empty()) last_write_ = Clock::now();
  events_.clear();
}

void Generation::Finish() {
  const FinishReason reason = stream_->finish_reason();
  if (reason == FinishReason::kError) return Fail(ErrorOf(stream_->status()));
  if (reason == FinishReason::kCancelled && !stopped_) {
    return Fail({503, "server_error", "server_shutdown", "", "the server is stopping"});
  }
  text_.Finish(events_);
  Deliver();
  AnswerEnd end{.stats = stream_->stats(), .reasoning_tokens = text_.reasoning_tokens()};
  if (!answer_.tool_calls.empty()) {
    end.reason = AnswerEnd::Reason::kToolCalls;
  } else if (text_.stopped()) {
    end.reason = AnswerEnd::Reason::kStopString;
    end.stop_string = text_.stop_string();
  } else if (reason == FinishReason::kLength) {
    end.reason = AnswerEnd::Reason::kLength;
  }
  Remember();
  done_ = true;
  writer_->End(end);
  Close(OutcomeName(end));
}

void Generation::Remember() {
  // A text that a stop string cut is not what was generated.
  if (plan_.history.empty() || stopped_ || ids_.empty()) return;
  StoredTurn turn;
  turn.turn = plan_.rendered.Turn(text_.all(), 0);
  turn.reasoning = answer_.reasoning;
  turn.ids = ids_;
  call_.service.turns().Put(plan_.history, answer_, std::move(turn));
}

void Generation::Fail(const ApiError& error) {
  if (done_) return;
  done_ = true;
  stream_->Cancel();
  writer_->Fail(error);
  call_.service.log().Write(LogLevel::kError, "failed",
                            {{"id", call_.request_id}, {"why", error.message}});
  Close("error");
}

void Generation::ClientLeft() {
  if (done_) return;
  done_ = true;
  stream_->Cancel();
  Close("cancelled");
}

void Generation::Close(std::string_view outcome) {
  const GenerateStats stats = stream_->stats();
  call_.service.metrics().CountAnswer(outcome, stats);
  const std::chrono::duration<double> elapsed = Clock::now() - start_;
  call_.service.log().Write(LogLevel::kInfo, "answer",
                            {{"id", call_.request_id},
                             {"outcome", std::string(outcome)},
                             {"prompt_tokens", fmt::to_string(stats.prompt_tokens)},
                             {"cached_tokens", fmt::to_string(stats.cached_tokens)},
                             {"generated_tokens", fmt::to_string(ids_.size())},
                             {"queue_s", fmt::format("{:.3f}", stats.queue_seconds)},
                             {"prefill_s", fmt::format("{:.3f}", stats.prefill_seconds)},
                             {"decode_s", fmt::format("{:.3f}", stats.decode_seconds)},
                             {"total_s", fmt::format("{:.3f}", elapsed.count())}});
}

void Generation::ArmTimer() {
  const ServiceOptions& options = call_.service.options();
  std::optional<Clock::time_point> next;
  if (options.keepalive_interval.count() > 0) next = last_write_ + options.keepalive_interval;
  if (options.timeout_seconds > 0) {
    const auto end = start_ + milliseconds(static_cast<int64_t>(options.timeout_seconds * 1000));
    next = next ? std::min(*next, end) : end;
  }
  if (!next) return;
  const auto delay = std::chrono::ceil<milliseconds>(*next - Clock::now());
  call_.exchange->After(std::max(delay, milliseconds(1)), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Tick();
  });
}

void Generation::Tick() {
  if (done_) return;
  const ServiceOptions& options = call_.service.options();
  const auto now = Clock::now();
  if (options.timeout_seconds > 0 &&
      now - start_ >= std::chrono::duration<double>(options.timeout_seconds)) {
    return Fail(TimeoutError(options.timeout_seconds));
  }
  const bool silent =
      options.keepalive_interval.count() > 0 && now - last_write_ >= options.keepalive_interval;
  if (silent) {
    // A client that does not read gets no more of them.
    if (call_.exchange->writable()) writer_->KeepAlive();
    last_write_ = now;
  }
  ArmTimer();
}

}  // namespace

void AppendEvent(const OutputEvent& event, ChatMessage& message) {
  switch (event.kind) {
    case OutputEvent::Kind::kText:
      if (message.content.empty()) message.content.emplace_back();
      message.content.back().text += event.text;
      break;
    case OutputEvent::Kind::kReasoning:
      message.reasoning += event.text;
      break;
    case OutputEvent::Kind::kToolBegin:
      message.tool_calls.push_back({event.tool_id, event.text, ""});
      break;
    case OutputEvent::Kind::kToolArguments:
      message.tool_calls.back().arguments += event.text;
      break;
    case OutputEvent::Kind::kToolEnd:
      break;
  }
}

void Generate(const Call& call, AnswerPlan plan, std::unique_ptr<AnswerWriter> writer,
              const std::function<void(std::function<void()> cancel)>& give_cancel) {
  const auto prompt_tokens = static_cast<int64_t>(plan.request.prompt.size());
  if (prompt_tokens >= call.service.max_context()) {
    return call.Fail(ContextLengthError(call.style, call.service.max_context(), prompt_tokens));
  }
  const int64_t most = call.service.options().max_tokens;
  if (most > 0) {
    int64_t& wanted = plan.request.max_tokens;
    wanted = wanted > 0 ? std::min(wanted, most) : most;
  }
  auto stream = call.service.engine().Submit(plan.request);
  if (!stream.ok()) return call.Fail(stream.status());
  const auto generation = std::make_shared<Generation>(call, std::move(plan), std::move(writer));
  if (give_cancel) give_cancel(generation->Canceller());
  generation->Start(std::move(stream).value());
}

}  // namespace tq::server
