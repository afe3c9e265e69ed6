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

Session::Session(GenerateRequest request, int64_t number, int64_t vocab_size, int64_t max_context,
                 std::shared_ptr<TokenStream> stream)
    : ids_(std::move(request.prompt)),
      end_ids_(MergeEndIds(request, vocab_size)),
      extras_(std::move(request.extras)),
      sampler_(std::move(request.sampling)),
      stream_(std::move(stream)),
      number_(number),
      priority_(request.priority),
      min_tokens_(request.min_tokens) {
  stats_.prompt_tokens = static_cast<int64_t>(ids_.size());
  const int64_t room = max_context - stats_.prompt_tokens;
  max_tokens_ = request.max_tokens < 0 ? room : std::min(request.max_tokens, room);
}

bool Session::Before(const Session& other) const {
  if (priority_ != other.priority_) return priority_ > other.priority_;
  return number_ < other.number_;
}

bool Session::Start(const SessionCaches& caches, int64_t spare_pages) {
  caches.prefix.Begin(cache_, caches.fingerprint);
  const int64_t num_pages = KvCache::PagesFor(static_cast<int64_t>(ids_.size()));
  const auto fits = [&](const PrefixMatch& match) {
    return num_pages - match.num_pages + spare_pages <=
           caches.prefix.available() - match.idle_pages;
  };
  PrefixMatch match = caches.prefix.Match(cache_, tokens());
  if (!fits(match)) {
    // A tail needs two pages for a moment: the tree's and its copy.
    match = caches.prefix.Match(cache_, tokens(), /*with_tail=*/false);
    if (!fits(match)) return false;
  }
  // For its longest run, so that a decode step allocates nothing.
  const int64_t longest = stats_.prompt_tokens + max_tokens_;
  ids_.reserve(static_cast<size_t>(longest));
  cache_.pages.reserve(static_cast<size_t>(KvCache::PagesFor(longest)));
  cache_.state_slot = caches.kv.AllocateSlot();
  TQ_CHECK(cache_.state_slot >= 0);
  Adopt(caches, match);
  const int64_t missing = num_pages - static_cast<int64_t>(cache_.pages.size());
  TQ_CHECK(caches.prefix.Allocate(missing, cache_.pages));
  return true;
}

void Session::Stop(const SessionCaches& caches) {
  caches.prefix.Release(cache_, tokens());
  stopped_ = true;
}

void Session::Adopt(const SessionCaches& caches, const PrefixMatch& match) {
  const int64_t before = cache_.length;
  caches.prefix.Adopt(cache_, match);
  if (!stopped_) stats_.cached_tokens += cache_.length - before;
}

void Session::TakeUp(const SessionCaches& caches) {
  const PrefixMatch match = caches.prefix.Match(cache_, tokens());
  if (match.length() > cache_.length) Adopt(caches, match);
}

int64_t Session::ChunkTokens(int64_t most, const CheckpointRule& rule) const {
  return std::min({num_pending(), most, NextCheckpoint(rule) - cache_.length});
}

bool Session::CanWaitFor(const Session& leader, const CheckpointRule& rule) const {
  // Where the leader shares next: at a checkpoint, or at the end of its page.
  const int64_t border = rule.interval > 0 ? leader.NextCheckpoint(rule)
                                           : (leader.cache_.num_shared + 1) * kPageTokens;
  if (border <= cache_.length || border > static_cast<int64_t>(leader.ids_.size())) return false;
  if (border >= static_cast<int64_t>(ids_.size()) || extras_ != leader.extras_) return false;
  return std::equal(ids_.begin(), ids_.begin() + border, leader.ids_.begin());
}

bool Session::Grow(PrefixCache& prefix) {
  const int64_t num_pages = KvCache::PagesFor(static_cast<int64_t>(ids_.size()));
  const int64_t missing = num_pages - static_cast<int64_t>(cache_.pages.size());
  return missing <= 0 || prefix.Allocate(missing, cache_.pages);
}

void Session::BeginStep(int64_t num_tokens, StepPlan& plan) {
  TQ_DCHECK(num_tokens > 0 && num_tokens <= num_pending());
  if (first_step_ == Clock::time_point()) first_step_ = Clock::now();
  const int64_t begin = cache_.length;
  plan.sequences.push_back(
      {plan.num_tokens(), num_tokens, begin, cache_.state_slot, std::move(cache_.pages)});
  for (int64_t position = begin; position < begin + num_tokens; ++position) {
    plan.ids.push_back(ids_[static_cast<size_t>(position)]);
    plan.positions.push_back(static_cast<int32_t>(position));
  }
  if (num_tokens == num_pending()) {
    plan.logits_tokens.push_back(static_cast<int32_t>(plan.num_tokens() - 1));
  }
}

bool Session::EndStep(SequencePlan& sequence, const SessionCaches& caches) {
  const int64_t checkpoint = NextCheckpoint(caches.checkpoints);
  cache_.pages = std::move(sequence.pages);
  cache_.length += sequence.num_tokens;
  caches.prefix.Publish(cache_, tokens());
  if (num_pending() == 0) return true;
  if (cache_.length == checkpoint) caches.prefix.SaveCheckpoint(cache_);
  return false;
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
