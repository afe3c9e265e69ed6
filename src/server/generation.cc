#include "server/generation.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/engine.h"
#include "server/bell.h"
#include "server/running_answer.h"

namespace tq::server {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(const Call& call, AnswerPlan plan, std::unique_ptr<AnswerWriter> writer)
      : call_(call), plan_(std::move(plan)), writer_(std::move(writer)) {}
  ~Generation() {
    if (bell_ != nullptr) bell_->Silence();
  }

  void Start();
  // Ends the answers early; any thread.
  std::function<void()> Canceller();

 private:
  // Goes on with what there is now.
  void Advance();
  // Submits, if the model is there.
  void Admit();
  // Once; before it errors are whole answers.
  void Begin();
  // Takes what the engine has, as long as the client keeps up.
  void Pump();
  // One id of each answer. false: nothing is there.
  bool TakeRound();
  void Deliver(size_t answer);
  // Of one answer; the last one ends all.
  void Finish(size_t answer);
  void Fail(const ApiError& error);
  void ClientLeft();
  void Tick();
  void ArmTimer();
  // The outcome of what has not ended; lets go of the model.
  void Close(std::string_view outcome);
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  const Call call_;
  const AnswerPlan plan_;
  std::unique_ptr<AnswerWriter> writer_;
  std::unique_ptr<LeaseRequest> waiting_;  // until the model is there
  ModelLease lease_;
  std::vector<RunningAnswer> answers_;
  std::vector<AnswerEnd> ends_;
  size_t num_ended_ = 0;
  std::vector<AnswerEvent> events_;  // reused
  std::shared_ptr<Bell> bell_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_write_ = start_;
  bool begun_ = false;
  bool done_ = false;
};

// The requests of a plan, in the order of the answers.
std::vector<GenerateRequest> RequestsOf(const AnswerPlan& plan) {
  std::vector<GenerateRequest> requests;
  GenerateRequest request = plan.request;
  for (size_t i = 0; i <= plan.more_prompts.size(); ++i) {
    if (i > 0) request.prompt = plan.more_prompts[i - 1];
    for (int64_t k = 0; k < plan.num_answers; ++k) requests.push_back(RequestOfAnswer(request, k));
  }
  return requests;
}

void Generation::Start() {
  const std::weak_ptr<Generation> weak = weak_from_this();
  const auto advance = [weak] {
    if (const auto self = weak.lock()) self->Advance();
  };
  // The exchange keeps this alive until its end.
  call_.exchange->OnClosed([self = shared_from_this()] { self->ClientLeft(); });
  call_.exchange->OnWritable(advance);
  bell_ = std::make_shared<Bell>(call_.exchange.get(), advance);
  auto asked = call_.service.pool().Ask(call_.model->index(), [bell = bell_] { bell->Ring(); });
  if (!asked.ok()) return Fail(ErrorOf(asked.status()));
  waiting_ = std::move(asked).value();
  Admit();
  if (!done_) ArmTimer();
}

void Generation::Advance() {
  if (done_) return;
  if (waiting_ != nullptr) Admit();
  if (waiting_ == nullptr) Pump();
}

void Generation::Admit() {
  std::optional<Result<ModelLease>> lease = waiting_->Take();
  if (!lease) return;
  waiting_.reset();
  if (!lease->ok()) return Fail(ErrorOf(lease->status()));
  lease_ = std::move(*lease).value();
  std::vector<std::shared_ptr<TokenStream>> streams;
  for (GenerateRequest& request : RequestsOf(plan_)) {
    auto stream = lease_->Submit(std::move(request));
    if (!stream.ok()) return Fail(ErrorOf(stream.status()));  // lets go of those before it
    streams.push_back(std::move(stream).value());
  }
  answers_.reserve(streams.size());
  for (auto& stream : streams) answers_.emplace_back(call_, plan_, std::move(stream));
  ends_.resize(answers_.size());
  Begin();
  for (RunningAnswer& answer : answers_) {
    answer.stream().SetListener([bell = bell_] { bell->Ring(); });
  }
}

void Generation::Begin() {
  if (begun_) return;
  begun_ = true;
  writer_->Begin();
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
  constexpr int kMostRounds = 256;  // others wait for this thread
  for (int i = 0; !done_ && call_.exchange->writable(); ++i) {
    if (i == kMostRounds) {
      bell_->Ring();
      return;
    }
    if (!TakeRound()) break;
  }
}

bool Generation::TakeRound() {
  bool found = false;
  for (size_t i = 0; i < answers_.size() && !done_; ++i) {
    RunningAnswer& answer = answers_[i];
    if (answer.ended()) continue;
    if (answer.Take(events_)) {
      found = true;
      Deliver(i);
    } else if (answer.stream().at_end()) {
      Finish(i);
    }
  }
  return found;
}

void Generation::Deliver(size_t answer) {
  for (const AnswerEvent& event : events_) writer_->Add(answer, event);
  if (!events_.empty()) last_write_ = Clock::now();
  events_.clear();
}

void Generation::Finish(size_t index) {
  RunningAnswer& answer = answers_[index];
  TokenStream& stream = answer.stream();
  const FinishReason reason = stream.finish_reason();
  if (reason == FinishReason::kError) return Fail(ErrorOf(stream.status()));
  if (reason == FinishReason::kCancelled && !answer.stopped()) {
    return Fail(StoppingError());
  }
  ends_[index] = answer.End(events_);
  Deliver(index);
  answer.Close(OutcomeName(ends_[index]), Seconds());
  writer_->EndAnswer(index, ends_[index]);
  if (++num_ended_ < answers_.size()) return;
  done_ = true;
  lease_.reset();
  writer_->End(ends_);
}

void Generation::Fail(const ApiError& error) {
  if (done_) return;
  done_ = true;
  if (begun_) {
    writer_->Fail(error);
    call_.service.log().Write(LogLevel::kError, "failed",
                              {{"id", call_.request_id}, {"why", error.message}});
  } else {
    call_.Fail(error);
  }
  Close("error");
}

void Generation::ClientLeft() {
  if (done_) return;
  done_ = true;
  Close("cancelled");
}

void Generation::Close(std::string_view outcome) {
  waiting_.reset();
  for (RunningAnswer& answer : answers_) {
    if (answer.ended()) continue;
    answer.stream().Cancel();
    answer.Close(outcome, Seconds());
  }
  lease_.reset();
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
    // A load that takes long: the client shall know that somebody is there.
    Begin();
    // A client that does not read gets no more of them.
    if (call_.exchange->writable()) writer_->KeepAlive();
    last_write_ = now;
  }
  ArmTimer();
}

std::optional<ApiError> CheckPrompts(const Call& call, const AnswerPlan& plan) {
  size_t longest = plan.request.prompt.size();
  for (const std::vector<int32_t>& prompt : plan.more_prompts) {
    longest = std::max(longest, prompt.size());
  }
  const auto prompt_tokens = static_cast<int64_t>(longest);
  const int64_t max_context = call.model->max_context();
  if (prompt_tokens < max_context) return std::nullopt;
  return ContextLengthError(call.style, max_context, prompt_tokens);
}

}  // namespace

void Generate(const Call& call, AnswerPlan plan, std::unique_ptr<AnswerWriter> writer,
              const std::function<void(std::function<void()> cancel)>& give_cancel) {
  if (const auto error = CheckPrompts(call, plan)) return call.Fail(*error);
  const int64_t most = call.service.options().max_tokens;
  if (most > 0) {
    int64_t& wanted = plan.request.max_tokens;
    wanted = wanted > 0 ? std::min(wanted, most) : most;
  }
  const auto generation = std::make_shared<Generation>(call, std::move(plan), std::move(writer));
  if (give_cancel) give_cancel(generation->Canceller());
  generation->Start();
}

}  // namespace tq::server
