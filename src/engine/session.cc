#include "engine/session.h"

#include <algorithm>

#include "base/check.h"

namespace tq {
namespace {

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::vector<int32_t> MergeEndIds(const GenerateRequest& request, int64_t vocab_size) {
  std::vector<int32_t> ids = request.end_ids;
  ids.insert(ids.end(), request.stop_ids.begin(), request.stop_ids.end());
  std::erase_if(ids, [&](int32_t id) { return id < 0 || id >= vocab_size; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

Session::Session(GenerateRequest request, int64_t vocab_size, int64_t max_context,
                 std::shared_ptr<TokenStream> stream)
    : ids_(std::move(request.prompt)),
      end_ids_(MergeEndIds(request, vocab_size)),
      sampler_(std::move(request.sampling)),
      stream_(std::move(stream)),
      min_tokens_(request.min_tokens) {
  stats_.prompt_tokens = static_cast<int64_t>(ids_.size());
  const int64_t room = max_context - stats_.prompt_tokens;
  max_tokens_ = request.max_tokens < 0 ? room : std::min(request.max_tokens, room);
}

bool Session::Reserve(KvCache& cache) {
  const int64_t length = stats_.prompt_tokens + max_tokens_;
  const int64_t num_pages = KvCache::PagesFor(length);
  if (num_pages > cache.free_pages()) return false;
  pages_.reserve(static_cast<size_t>(num_pages));
  ids_.reserve(static_cast<size_t>(length));
  state_slot_ = cache.AllocateSlot();
  return state_slot_ >= 0 && cache.Allocate(num_pages, pages_);
}

void Session::ReleasePages(KvCache& cache) {
  cache.Free(pages_);
  pages_.clear();
  if (state_slot_ >= 0) cache.FreeSlot(state_slot_);
  state_slot_ = -1;
}

void Session::BeginStep(int64_t num_tokens, StepPlan& plan) {
  TQ_DCHECK(num_tokens > 0 && num_tokens <= num_pending());
  if (num_cached_ == 0) first_step_ = Clock::now();
  plan.sequences.push_back(
      {plan.num_tokens(), num_tokens, num_cached_, state_slot_, std::move(pages_)});
  for (int64_t position = num_cached_; position < num_cached_ + num_tokens; ++position) {
    plan.ids.push_back(ids_[static_cast<size_t>(position)]);
    plan.positions.push_back(static_cast<int32_t>(position));
  }
  if (num_tokens == num_pending()) {
    plan.logits_tokens.push_back(static_cast<int32_t>(plan.num_tokens() - 1));
  }
}

bool Session::EndStep(SequencePlan& sequence) {
  pages_ = std::move(sequence.pages);
  num_cached_ += sequence.num_tokens;
  return num_pending() == 0;
}

void Session::Accept(std::span<float> logits) {
  std::span<const int32_t> forbidden;
  if (stats_.generated_tokens < min_tokens_) forbidden = end_ids_;
  const int32_t id = sampler_.Sample(logits, ids_, forbidden, static_cast<int64_t>(ids_.size()));
  if (std::binary_search(end_ids_.begin(), end_ids_.end(), id)) {
    end_reason_ = FinishReason::kStop;
    return;
  }
  const Clock::time_point now = Clock::now();
  if (stats_.generated_tokens == 0) first_token_ = now;
  stats_.decode_seconds = Seconds(now - first_token_);
  ++stats_.generated_tokens;
  ids_.push_back(id);
  stream_->Push(id);
  if (stats_.generated_tokens == max_tokens_) end_reason_ = FinishReason::kLength;
}

FinishReason Session::end_reason() const {
  if (end_reason_ != FinishReason::kNone) return end_reason_;
  return stream_->cancelled() ? FinishReason::kCancelled : FinishReason::kNone;
}

void Session::Finish(FinishReason reason) {
  const Clock::time_point now = Clock::now();
  const bool begun = first_step_ != Clock::time_point();
  stats_.queue_seconds = Seconds((begun ? first_step_ : now) - submitted_);
  if (begun) {
    const bool answered = stats_.generated_tokens > 0;
    stats_.prefill_seconds = Seconds((answered ? first_token_ : now) - first_step_);
  }
  stream_->Finish(reason, Status::Ok(), stats_);
}

}  // namespace tq
