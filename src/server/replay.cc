#include "server/replay.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq::server {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kMostRepeats = 1 << 20;
constexpr int64_t kMostMilliseconds = 600'000;
// Far above any bias, so that every way to sample takes it.
constexpr float kCertain = 1e4f;
constexpr std::string_view kNothingApplies = "(no answer of the replay file applies)";

Result<ReplayAnswer> ParseAnswer(const Json& json, const std::string& where) {
  if (!json.is_object()) {
    return InvalidArgument(
        fmt::format("{}: expected an object, found {}", where, json.type_name()));
  }
  ConfigReader reader(json, where);
  ReplayAnswer answer;
  answer.when = reader.String("when", "");
  answer.unless = reader.String("unless", "");
  if (!reader.Has("say")) return InvalidArgument(fmt::format("{}: expected \"say\"", where));
  answer.say = reader.String("say", "");
  answer.fail = reader.Bool("fail", false);
  const auto limited = [&](const char* key, int64_t otherwise, int64_t low, int64_t high) {
    const int64_t value = reader.Int(key, otherwise);
    if (value < low || value > high) {
      reader.Fail(InvalidArgument(
          fmt::format("{}.{}: expected {} to {}, found {}", where, key, low, high, value)));
    }
    return value;
  };
  answer.repeat = limited("repeat", 1, 1, kMostRepeats);
  answer.wait = milliseconds(limited("wait_ms", 0, 0, kMostMilliseconds));
  answer.pace = milliseconds(limited("token_ms", 0, 0, kMostMilliseconds));
  TQ_RETURN_IF_ERROR(reader.status());
  for (const std::string& key : reader.UnreadKeys()) {
    return InvalidArgument(fmt::format(
        "{}: expected when, unless, say, repeat, fail, wait_ms or token_ms, found {}", where, key));
  }
  return answer;
}

// What is known of a token of a sequence. It stands in the KV pages, so caches, batches and
// prefixes have to be right for an answer to be.
struct Place {
  int32_t id = 0;
  int32_t answer = -1;  // that is being said after this token
  int64_t next = 0;     // index of its token that comes next
};
static_assert(sizeof(Place) == 16);

class ReplayModel final : public StepModel {
 public:
  ReplayModel(std::vector<ReplayAnswer> answers, const TextAssets& text, int64_t max_context)
      : answers_(std::move(answers)),
        tokenizer_(*text.tokenizer),
        end_id_(text.end_ids.front()),
        max_context_(max_context) {
    for (const ReplayAnswer& answer : answers_) said_.push_back(tokenizer_.Encode(answer.say, {}));
  }

  // Errors: an answer that would not come out as it was given.
  Status Check() const {
    for (size_t i = 0; i + 1 < answers_.size(); ++i) {  // not the last one, which is not given
      const std::string back = tokenizer_.Decode(said_[i], false);
      if (back == answers_[i].say) continue;
      return InvalidArgument(
          fmt::format("answers[{}].say: expected a text that the model's tokenizer gives back, "
                      "found one that becomes \"{}\"",
                      i, back.substr(0, 100)));
    }
    return Status::Ok();
  }

  int64_t vocab_size() const override { return tokenizer_.vocab_size(); }
  int64_t max_position_embeddings() const override { return max_context_; }
  std::vector<CacheNeeds> Needs(const KvSettings&) const override {
    constexpr int64_t kFloats = sizeof(Place) / sizeof(float) / 2;  // of a key, and of a value
    return {{.paged = {{.settings = KvFormat::kF32,
                        .num_kv_heads = 1,
                        .head_dim = kFloats,
                        .v_head_dim = kFloats}},
             .state_floats = 0}};
  }
  std::string Fingerprint(const KvSettings&) const override { return "replay"; }
  void Forward(const StepPlan& plan, KvCache& cache, float* logits) override;

 private:
  static std::byte* PlaceBytes(KvCache& cache, const SequencePlan& sequence, int64_t position) {
    LayerCache::Paged& layer = cache.layer(0).paged[0];
    const int32_t page = sequence.pages[static_cast<size_t>(position / kPageTokens)];
    return layer.pages.data() + page * layer.layout.page_bytes() +
           position % kPageTokens * static_cast<int64_t>(sizeof(Place));
  }
  static Place GetPlace(KvCache& cache, const SequencePlan& sequence, int64_t position) {
    Place place;
    std::memcpy(&place, PlaceBytes(cache, sequence, position), sizeof(place));
    return place;
  }
  static void SetPlace(KvCache& cache, const SequencePlan& sequence, int64_t position,
                       const Place& place) {
    std::memcpy(PlaceBytes(cache, sequence, position), &place, sizeof(place));
  }

  int64_t Length(int32_t answer) const {
    const auto i = static_cast<size_t>(answer);
    return static_cast<int64_t>(said_[i].size()) * answers_[i].repeat;
  }
  // The end of the turn behind its last token.
  int32_t TokenOf(int32_t answer, int64_t index) const {
    if (index >= Length(answer)) return end_id_;
    const std::vector<int32_t>& ids = said_[static_cast<size_t>(answer)];
    return ids[static_cast<size_t>(index) % ids.size()];
  }
  Place After(const Place& before, int32_t id) const {
    Place place{.id = id};
    const bool goes_on = before.answer >= 0 && before.next < Length(before.answer) &&
                         id == TokenOf(before.answer, before.next);
    if (goes_on) {
      place.answer = before.answer;
      place.next = before.next + 1;
    }
    return place;
  }
  int32_t Choose(KvCache& cache, const SequencePlan& sequence, int64_t length) const;
  // Writes the logits of the token that comes behind `place`; returns how long it takes.
  milliseconds Say(const Place& place, std::span<float> row) const;

  const std::vector<ReplayAnswer> answers_;
  std::vector<std::vector<int32_t>> said_;
  const Tokenizer& tokenizer_;
  const int32_t end_id_;
  const int64_t max_context_;
};

void ReplayModel::Forward(const StepPlan& plan, KvCache& cache, float* logits) {
  milliseconds wait{0};
  size_t next_logits = 0;
  for (const SequencePlan& sequence : plan.sequences) {
    for (int64_t i = 0; i < sequence.num_tokens; ++i) {
      const int64_t token = sequence.first_token + i;
      const int64_t position = sequence.start_position + i;
      const Place before = position > 0 ? GetPlace(cache, sequence, position - 1) : Place();
      Place place = After(before, plan.ids[static_cast<size_t>(token)]);
      SetPlace(cache, sequence, position, place);
      if (next_logits == plan.logits_tokens.size()) continue;
      if (plan.logits_tokens[next_logits] != token) continue;
      if (place.answer < 0) {
        place.answer = Choose(cache, sequence, position + 1);
        SetPlace(cache, sequence, position, place);
      }
      const auto width = static_cast<size_t>(vocab_size());
      wait = std::max(wait, Say(place, {logits + next_logits * width, width}));
      ++next_logits;
    }
  }
  if (wait.count() > 0) std::this_thread::sleep_for(wait);
}

int32_t ReplayModel::Choose(KvCache& cache, const SequencePlan& sequence, int64_t length) const {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(GetPlace(cache, sequence, i).id);
  const std::string prompt = tokenizer_.Decode(ids, false);
  int32_t best = -1;
  int64_t best_at = -2;
  for (size_t i = 0; i < answers_.size(); ++i) {
    const ReplayAnswer& answer = answers_[i];
    if (!answer.unless.empty() && prompt.find(answer.unless) != std::string::npos) continue;
    const size_t found = answer.when.empty() ? 0 : prompt.rfind(answer.when);
    if (found == std::string::npos) continue;
    // Where it ends, so that the longer of two that begin alike is taken.
    const int64_t at = answer.when.empty() ? -1 : static_cast<int64_t>(found + answer.when.size());
    if (at <= best_at) continue;
    best = static_cast<int32_t>(i);
    best_at = at;
  }
  return best;
}

milliseconds ReplayModel::Say(const Place& place, std::span<float> row) const {
  const auto& [id, answer, next] = place;
  const ReplayAnswer& said = answers_[static_cast<size_t>(answer)];
  std::fill(row.begin(), row.end(), 0.0f);
  const bool fails = said.fail && next >= Length(answer);
  if (fails) {
    std::fill(row.begin(), row.end(), std::numeric_limits<float>::quiet_NaN());
  } else {
    row[static_cast<size_t>(TokenOf(answer, next))] = kCertain;
  }
  return next == 0 ? said.wait : said.pace;
}

}  // namespace

Result<std::vector<ReplayAnswer>> ParseReplay(std::string_view json, std::string_view where) {
  TQ_ASSIGN_OR_RETURN(const Json file, ParseJson(json, where));
  const bool is_list = file.is_object() && file.size() == 1 && file.contains("answers") &&
                       file["answers"].is_array();
  if (!is_list) {
    return InvalidArgument(fmt::format(
        R"({}: expected {{"answers": [{{"when": TEXT, "say": TEXT}}, ...]}}, found something else)",
        where));
  }
  std::vector<ReplayAnswer> answers;
  for (const Json& item : file["answers"]) {
    const std::string name = fmt::format("{}: answers[{}]", where, answers.size());
    TQ_ASSIGN_OR_RETURN(ReplayAnswer answer, ParseAnswer(item, name));
    answers.push_back(std::move(answer));
  }
  return answers;
}

Result<std::unique_ptr<StepModel>> MakeReplayModel(std::vector<ReplayAnswer> answers,
                                                   const TextAssets& text, int64_t max_context) {
  TQ_RETURN_IF_ERROR(NeedTokenizer(text).status());
  if (text.end_ids.empty()) {
    return InvalidArgument("expected a checkpoint that names its end token, found none");
  }
  // Whatever the file says, something applies.
  answers.push_back({.say = std::string(kNothingApplies)});
  auto model = std::make_unique<ReplayModel>(std::move(answers), text, max_context);
  TQ_RETURN_IF_ERROR(model->Check());
  return std::unique_ptr<StepModel>(std::move(model));
}

}  // namespace tq::server
