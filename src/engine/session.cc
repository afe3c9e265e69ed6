#include "engine/session.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/check.h"

namespace tq {
namespace {

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Those of the vocabulary, sorted.
std::vector<int32_t> Merge(std::vector<int32_t> ids, const std::vector<int32_t>& others,
                           int64_t vocab_size) {
  ids.insert(ids.end(), others.begin(), others.end());
  std::erase_if(ids, [&](int32_t id) { return id < 0 || id >= vocab_size; });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

Session::Session(GenerateRequest request, int64_t number, int64_t vocab_size, int64_t max_context,
                 std::shared_ptr<TokenStream> stream)
    : ids_(std::move(request.prompt)),
      end_ids_(Merge(request.end_ids, request.stop_ids, vocab_size)),
      never_ids_(
          Merge(request.ignore_end ? request.end_ids : std::vector<int32_t>(), {}, vocab_size)),
      extras_(std::move(request.extras)),
      sampler_(std::move(request.sampling)),
      num_logprobs_(request.num_logprobs),
      loop_detector_(request.loop_limit),
      constraint_(std::move(request.constraint)),
      mask_(constraint_ != nullptr ? static_cast<size_t>((vocab_size + 31) / 32) : 0),
      stream_(std::move(stream)),
      number_(number),
      priority_(request.priority),
      min_tokens_(request.min_tokens) {
  stats_.prompt_tokens = static_cast<int64_t>(ids_.size());
  const int64_t room = max_context - stats_.prompt_tokens;
  if (request.pooling) pooler_.emplace(*request.pooling);
  max_tokens_ = pooler_ ? 0 : request.max_tokens < 0 ? room : std::min(request.max_tokens, room);
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
  if (pooler_) pooler_->Reset();
  PrefixMatch match;
  match.node = cache_.node;
  if (reuses_prefix()) match = caches.prefix.Match(cache_, tokens());
  if (!fits(match)) {
    if (!reuses_prefix()) return false;
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
  StartLoad(caches);
  return true;
}

void Session::Stop(const SessionCaches& caches) {
  if (load_ != nullptr) caches.disk->Cancel(*load_);
  load_.reset();
  const int64_t length = cache_.length;
  const int32_t last = caches.prefix.Release(cache_, tokens());
  if (caches.saver != nullptr) caches.saver->SavePath(last, length, /*with_state=*/true);
  // One that had not begun starts anew in every respect.
  if (first_step_ == Clock::time_point()) {
    stats_.cached_tokens = 0;
  } else {
    stopped_ = true;
  }
}

// What the disk has beyond the tree goes straight into the session's own pages and slot.
void Session::StartLoad(const SessionCaches& caches) {
  if (caches.disk == nullptr || !reuses_prefix() || num_pending() <= DiskCache::kLeastGain) return;
  load_ = caches.disk->Load(tokens(), cache_.num_shared, cache_.length, cache_.pages,
                            caches.kv.has_state() ? cache_.state_slot : -1);
  cache_.loading = true;
  length_before_load_ = cache_.length;
}

bool Session::EndLoad(const SessionCaches& caches) {
  const std::shared_ptr<DiskLoad> load = std::move(load_);
  if (load->failed()) return false;
  cache_.loading = false;
  if (load->length() == 0) return true;
  cache_.length = load->length();
  if (!stopped_) stats_.cached_tokens += cache_.length - length_before_load_;
  caches.prefix.Publish(cache_, tokens());
  if (cache_.length == cache_.num_shared * kPageTokens) caches.prefix.SaveCheckpoint(cache_);
  saved_tokens_ = cache_.length;
  return true;
}

void Session::Adopt(const SessionCaches& caches, const PrefixMatch& match) {
  const int64_t before = cache_.length;
  caches.prefix.Adopt(cache_, match);
  if (!stopped_) stats_.cached_tokens += cache_.length - before;
}

void Session::TakeUp(const SessionCaches& caches) {
  if (!reuses_prefix()) return;
  const PrefixMatch match = caches.prefix.Match(cache_, tokens());
  if (match.length() > cache_.length) Adopt(caches, match);
}

int64_t Session::ChunkTokens(int64_t most, const CheckpointRule& rule) const {
  return std::min({num_pending(), most, NextCheckpoint(rule) - cache_.length});
}

bool Session::CanWaitFor(const Session& leader, const CheckpointRule& rule) const {
  if (!reuses_prefix()) return false;
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

void Session::BeginStep(int64_t num_tokens, StepPlan& plan, std::vector<int32_t>& hidden_tokens) {
  TQ_DCHECK(num_tokens > 0 && num_tokens <= num_pending());
  if (first_step_ == Clock::time_point()) first_step_ = Clock::now();
  const int64_t begin = cache_.length;
  plan.sequences.push_back(
      {plan.num_tokens(), num_tokens, begin, cache_.state_slot, std::move(cache_.pages)});
  for (int64_t position = begin; position < begin + num_tokens; ++position) {
    plan.ids.push_back(ids_[static_cast<size_t>(position)]);
    plan.positions.push_back(static_cast<int32_t>(position));
  }
  if (pooler_) {
    pooler_->Want(plan.num_tokens() - num_tokens, num_tokens, begin, stats_.prompt_tokens,
                  hidden_tokens);
  } else if (num_tokens == num_pending()) {
    plan.logits_tokens.push_back(static_cast<int32_t>(plan.num_tokens() - 1));
  }
}

bool Session::EndStep(SequencePlan& sequence, const SessionCaches& caches) {
  const int64_t checkpoint = NextCheckpoint(caches.checkpoints);
  cache_.pages = std::move(sequence.pages);
  cache_.length += sequence.num_tokens;
  caches.prefix.Publish(cache_, tokens());
  const bool at_checkpoint = cache_.length == checkpoint && num_pending() > 0;
  if (at_checkpoint &&
      caches.checkpoints.ForMemory(checkpoint, stats_.prompt_tokens, cache_.branch)) {
    caches.prefix.SaveCheckpoint(cache_);
  }
  if (caches.saver != nullptr) SaveProgress(caches, at_checkpoint);
  if (!pooler_) return num_pending() == 0;
  if (num_pending() == 0) EndPooling();
  return false;
}

void Session::EndPooling() {
  embedding_ = pooler_->Result();
  const bool finite = std::all_of(embedding_.begin(), embedding_.end(),
                                  [](float value) { return std::isfinite(value); });
  end_reason_ = finite ? FinishReason::kStop : FinishReason::kError;
  if (finite) return;
  embedding_.clear();
  status_ = Internal(
      "hidden states: expected numbers, found NaN or infinity: the checkpoint may be "
      "damaged");
}

void Session::SaveProgress(const SessionCaches& caches, bool at_checkpoint) {
  const DiskCacheOptions& options = caches.disk->options();
  const int64_t length = cache_.num_shared * kPageTokens;
  if (options.prefill_checkpoints &&
      length / options.save_every > saved_tokens_ / options.save_every) {
    caches.saver->SavePath(cache_.node, length, /*with_state=*/false);
    saved_tokens_ = length;
  }
  if (at_checkpoint &&
      caches.checkpoints.ForDisk(cache_.length, stats_.prompt_tokens, cache_.branch)) {
    caches.saver->SaveState(cache_.node, length, cache_.state_slot);
  }
}

void Session::FillMask() {
  constraint_->FillMask(mask_);
  const bool empty =
      std::all_of(mask_.begin(), mask_.end(), [](uint32_t bits) { return bits == 0; });
  if (empty) {
    end_reason_ = FinishReason::kError;
    status_ = InvalidArgument(
        fmt::format("constraint: expected an id that may come after {} tokens of the answer, found "
                    "none; check the grammar or schema",
                    stats_.generated_tokens));
  }
}

void Session::Accept(std::span<float> logits, SamplerScratch& scratch) {
  if (end_reason_ != FinishReason::kNone) return;
  SamplerCall call;
  call.history = ids_;
  call.prompt_tokens = static_cast<size_t>(stats_.prompt_tokens);
  call.forbidden = stats_.generated_tokens < min_tokens_ ? end_ids_ : never_ids_;
  call.position = static_cast<int64_t>(ids_.size());
  call.num_logprobs = num_logprobs_;
  call.allowed = mask_;
  call.greedy = constraint_ != nullptr && constraint_->TakesBest();
  const SampledToken token = sampler_.Sample(logits, call, scratch);
  if (std::isnan(logits[static_cast<size_t>(token.id)])) {
    end_reason_ = FinishReason::kError;
    status_ = Internal(fmt::format(
        "logits: expected numbers, found NaN after {} tokens: the checkpoint may be damaged",
        ids_.size()));
    return;
  }
  if (std::binary_search(end_ids_.begin(), end_ids_.end(), token.id)) {
    end_reason_ = FinishReason::kStop;
    return;
  }
  const Clock::time_point now = Clock::now();
  if (stats_.generated_tokens == 0) first_token_ = now;
  stats_.decode_seconds = Seconds(now - first_token_);
  ++stats_.generated_tokens;
  ids_.push_back(token.id);
  stream_->Push(token.id, token.logprobs);
  if (stats_.generated_tokens == max_tokens_) end_reason_ = FinishReason::kLength;
  if (loop_detector_.Push(std::span(ids_).subspan(call.prompt_tokens))) {
    end_reason_ = FinishReason::kLoop;
  }
  if (constraint_ == nullptr) return;
  constraint_->Accept(token.id);
  if (constraint_->IsTerminated()) end_reason_ = FinishReason::kStop;
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
  stream_->Finish(reason, status_, stats_, std::move(embedding_));
}

}  // namespace tq
