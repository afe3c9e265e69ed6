#include "chat/repeat_generated.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tq {
namespace {

// How a turn is marked in the rendering that shows where it stands.
enum class Shape : uint8_t {
  kText,   // a marker instead of everything
  kCalls,  // a marker as text and in the last call: for templates that need the calls
  kNone,   // not at all: it was not found
};

struct Turn {
  size_t message = 0;
  Shape shape = Shape::kText;
  std::string marker;
  size_t history_end = 0;  // in the template's rendering: where its opening begins
  size_t end = 0;          // where its text ends
};

bool EndsAlike(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  return a.substr(a.size() - size) == b.substr(b.size() - size);
}

bool BeginsAlike(std::string_view a, std::string_view b) {
  return a.empty() || b.empty() || a[0] == b[0];
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// Where in `piece`, the text between the turn before and this one, the history ends that the turn
// answered; npos: nowhere. fits_before(between, rest): whether the turn before, with `between`
// behind it, may have ended with `rest` when this one was generated.
template <typename Fn>
size_t FindHistoryEnd(std::string_view piece, const GeneratedTurn& turn, const Fn& fits_before) {
  const std::string_view wanted = turn.history_end;
  for (size_t end = piece.size() + 1; end-- > 0;) {
    if (!BeginsAlike(piece.substr(end), turn.opening)) continue;
    if (!EndsAlike(piece.substr(0, end), wanted)) continue;
    if (end >= wanted.size()) return end;
    // Less than that stands here.
    if (fits_before(piece.substr(0, end), wanted.substr(0, wanted.size() - end))) return end;
  }
  return std::string_view::npos;
}

// The quote around a marker: what stands on both sides of it.
size_t QuoteLength(std::string_view before, std::string_view rest) {
  constexpr size_t kMaxBytes = 8;
  size_t length = 0;
  for (size_t size = 1; size <= std::min({kMaxBytes, before.size(), rest.size()}); ++size) {
    if (before.substr(before.size() - size) == rest.substr(0, size)) length = size;
  }
  return length;
}

// How much of `rest`, what follows a marker inside the arguments of a call, the generated text says
// already: the closing brackets and tags. 0: it ends otherwise. The marker is a text in quotes, the
// last argument that was generated may be none.
size_t ClosingLength(std::string_view before, std::string_view rest, std::string_view text) {
  constexpr size_t kMaxBytes = 256;
  const std::string_view trimmed = Trim(text);
  for (const size_t skipped : {size_t{0}, QuoteLength(before, rest)}) {
    const std::string_view closing = rest.substr(skipped, kMaxBytes);
    for (size_t size = closing.size(); size > 0; --size) {
      const std::string_view part = closing.substr(0, size);
      if (text.ends_with(part) || trimmed.ends_with(part)) return skipped + size;
    }
  }
  return 0;
}

class Locator {
 public:
  Locator(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
          const RenderMessages& render, const std::string& rendered)
      : messages_(messages),
        add_generation_prompt_(add_generation_prompt),
        render_(render),
        rendered_(rendered) {}

  // Turns that were found have a shape other than kNone.
  std::vector<Turn> Run() {
    MakeTurns();
    constexpr int kMaxRenders = 8;
    for (int i = 0; i < kMaxRenders; ++i) {
      if (!AnyLeft() || Try()) return std::move(turns_);
    }
    for (Turn& turn : turns_) turn.shape = Shape::kNone;
    return std::move(turns_);
  }

 private:
  void MakeTurns() {
    std::string stem = "tqTurn";
    while (rendered_.find(stem) != std::string::npos) stem += 'x';
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!messages_[i].generated) continue;
      Turn turn;
      turn.message = i;
      turn.marker = fmt::format("{}{}end", stem, i);
      turns_.push_back(std::move(turn));
    }
  }

  bool AnyLeft() const {
    return std::any_of(turns_.begin(), turns_.end(),
                       [](const Turn& turn) { return turn.shape != Shape::kNone; });
  }

  const GeneratedTurn& Generated(const Turn& turn) const {
    return *messages_[turn.message].generated;
  }

  bool MarksCall(const Turn& turn) const {
    return turn.shape == Shape::kCalls && !messages_[turn.message].tool_calls.empty();
  }

  void Mark(const Turn& turn, ChatMessage& message) const {
    const bool marks_call = MarksCall(turn);
    message.reasoning.clear();
    // Some templates close the turn behind calls only when there is text.
    if (!marks_call || !message.content.empty()) {
      message.content = {{ContentPart::Kind::kText, turn.marker, {}}};
    }
    if (marks_call) {
      message.tool_calls.back().arguments = fmt::format(R"({{"{0}": "{0}"}})", turn.marker);
    } else {
      message.tool_calls.clear();
    }
  }

  // Gives up on a turn, or on hiding calls: where one needs them, all do.
  bool Fail(Turn* turn) {
    bool changed = false;
    const bool is_call = turn == nullptr || !messages_[turn->message].tool_calls.empty();
    if (is_call && (turn == nullptr || turn->shape == Shape::kText)) {
      for (Turn& other : turns_) {
        const bool has_calls = !messages_[other.message].tool_calls.empty();
        if (!has_calls || other.shape != Shape::kText) continue;
        other.shape = Shape::kCalls;
        changed = true;
      }
    }
    if (changed) return false;
    for (Turn& other : turns_) {
      if (turn == nullptr || turn == &other) other.shape = Shape::kNone;
    }
    return false;
  }

  bool Try() {
    std::vector<ChatMessage> marked = messages_;
    for (const Turn& turn : turns_) {
      if (turn.shape != Shape::kNone) Mark(turn, marked[turn.message]);
    }
    const Result<std::string> text = render_(marked, add_generation_prompt_);
    if (!text.ok()) return Fail(nullptr);
    std::string_view rest = *text;
    size_t at = 0;  // in rendered_
    Turn* last = nullptr;
    for (Turn& turn : turns_) {
      if (turn.shape == Shape::kNone) continue;
      const GeneratedTurn& generated = Generated(turn);
      const size_t first = rest.find(turn.marker);
      if (first == std::string_view::npos) return Fail(&turn);
      // As it was generated, or as the template shows it.
      const auto fits_before = [&](std::string_view between, std::string_view ending) {
        if (last == nullptr) return false;
        if (EndsAlike(Generated(*last).text, ending)) return true;
        const size_t found = rendered_.find(between, at);
        return found != std::string::npos &&
               EndsAlike(std::string_view(rendered_).substr(0, found), ending);
      };
      const size_t history_end = FindHistoryEnd(rest.substr(0, first), generated, fits_before);
      if (history_end == std::string_view::npos) return Fail(&turn);
      if (!Advance(rest.substr(0, history_end), last, &at))
        return Fail(last == nullptr ? &turn : last);
      turn.history_end = at;
      const size_t marker = rest.rfind(turn.marker);
      const std::string_view before = rest.substr(0, marker);
      rest.remove_prefix(marker + turn.marker.size());
      if (MarksCall(turn)) {
        const size_t closing = ClosingLength(before, rest, generated.text);
        if (closing == 0) return Fail(&turn);
        rest.remove_prefix(closing);
      } else if (marker != first) {
        return Fail(&turn);
      }
      last = &turn;
    }
    const std::string_view canonical = rendered_;
    if (canonical.size() - at < rest.size() || !canonical.ends_with(rest)) return Fail(last);
    last->end = canonical.size() - rest.size();
    return true;
  }

  // Finds what stands between two turns in the template's own rendering.
  bool Advance(std::string_view between, Turn* last, size_t* at) const {
    const size_t found = last == nullptr ? 0 : rendered_.find(between, *at);
    if (found == std::string::npos || rendered_.compare(found, between.size(), between) != 0) {
      return false;
    }
    if (last != nullptr) last->end = found;
    *at = found + between.size();
    return true;
  }

  const std::vector<ChatMessage>& messages_;
  const bool add_generation_prompt_;
  const RenderMessages& render_;
  const std::string& rendered_;
  std::vector<Turn> turns_;
};

}  // namespace

uint64_t HashPrompt(std::string_view text, uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

namespace {

// The spans of a text of which stretches move: those of a stretch go with it, others are dropped.
class MovedSpans {
 public:
  explicit MovedSpans(std::vector<TextSpan> spans) : spans_(std::move(spans)) {}

  // The stretch [begin, end) moves to `to`. Stretches come in order.
  void Move(size_t begin, size_t end, size_t to) {
    for (; next_ < spans_.size() && spans_[next_].begin < end; ++next_) {
      const TextSpan span = spans_[next_];
      if (span.begin < begin || span.end > end) continue;
      moved_.push_back({span.begin - begin + to, span.end - begin + to});
    }
  }
  std::vector<TextSpan> Take() { return std::move(moved_); }

 private:
  std::vector<TextSpan> spans_;
  std::vector<TextSpan> moved_;
  size_t next_ = 0;
};

}  // namespace

void RepeatGenerated(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
                     bool knows_thoughts, const RenderMessages& render, RenderedPrompt& prompt) {
  const std::string rendered = std::move(prompt.text);
  MovedSpans plain(std::move(prompt.plain));
  std::string text;
  size_t at = 0;
  uint64_t hash = kPromptHashStart;
  size_t hashed = 0;
  for (const Turn& turn : Locator(messages, add_generation_prompt, render, rendered).Run()) {
    const ChatMessage& message = messages[turn.message];
    const GeneratedTurn& generated = *message.generated;
    if (turn.shape == Shape::kNone) {
      prompt.notes.push_back(fmt::format(
          "message {}: the chat template shows it elsewhere or otherwise than generated",
          turn.message));
      continue;
    }
    const std::string_view shown =
        std::string_view(rendered).substr(turn.history_end, turn.end - turn.history_end);
    if (knows_thoughts && shown.find(Trim(message.reasoning)) == std::string_view::npos) {
      prompt.notes.push_back(
          fmt::format("message {}: the chat template leaves its reasoning out", turn.message));
      continue;
    }
    plain.Move(at, turn.history_end, text.size());
    text.append(rendered, at, turn.history_end - at);
    text += generated.opening;
    hash = HashPrompt(std::string_view(text).substr(hashed), hash);
    hashed = text.size();
    text += generated.text;
    prompt.repeated.push_back({hashed, text.size(), generated.tag, hash == generated.prompt_hash});
    at = turn.end;
  }
  plain.Move(at, rendered.size(), text.size());
  text.append(rendered, at);
  prompt.text = std::move(text);
  prompt.plain = plain.Take();
  prompt.opening_bytes = std::min(prompt.opening_bytes, prompt.text.size());
}

}  // namespace tq
