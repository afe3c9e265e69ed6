#include "chat/plain_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tq {
namespace {

constexpr std::string_view kThoughtMarkers[] = {"<think>", "</think>", "[THINK]", "[/THINK]"};

bool IsThoughtMarker(std::string_view text) {
  return std::find(std::begin(kThoughtMarkers), std::end(kThoughtMarkers), text) !=
         std::end(kThoughtMarkers);
}

bool IsAssistant(const OrderedJson& message) {
  return message.is_object() && message.value("role", "") == "assistant";
}

// The next special text from `at` on that is to be marked; `at` moves behind it. kNone: there is no
// more.
size_t NextSpecial(const SpecialTexts& special, const std::string& text, bool spare_thoughts,
                   size_t& at) {
  while (at < text.size()) {
    const size_t index = special.LongestAt(text, at);
    if (index == SpecialTexts::kNone) {
      ++at;
      continue;
    }
    at += special.text(index).size();
    if (!spare_thoughts || !IsThoughtMarker(special.text(index))) return index;
  }
  return SpecialTexts::kNone;
}

// Whether Markers::Mark would mark something.
bool HasSpecial(const SpecialTexts& special, const OrderedJson& value, bool spare_thoughts) {
  const auto in_text = [&](const std::string& text) {
    size_t at = 0;
    return NextSpecial(special, text, spare_thoughts, at) != SpecialTexts::kNone;
  };
  if (value.is_string()) return in_text(value.get_ref<const std::string&>());
  if (!value.is_structured()) return false;
  for (const auto& [key, item] : value.items()) {
    if (value.is_object() && in_text(key)) return true;
    if (HasSpecial(special, item, spare_thoughts)) return true;
  }
  return false;
}

// Puts a marker behind every special text of a JSON value, and takes them out of a rendering.
class Markers {
 public:
  Markers(const SpecialTexts& special, const std::string& rendered) : special_(special) {
    while (rendered.find(stem_) != std::string::npos) stem_ += 'x';
  }

  void Mark(OrderedJson& message) const { MarkValue(message, IsAssistant(message)); }

  // Takes the markers out of `marked`; spans: what stood before each.
  std::string Strip(std::string_view marked, std::vector<TextSpan>& spans) const {
    std::string text;
    for (size_t found = marked.find(stem_); found != std::string_view::npos;
         found = marked.find(stem_)) {
      text.append(marked, 0, found);
      marked.remove_prefix(found);
      size_t index = 0;
      const char* digits = marked.data() + stem_.size();
      const auto parsed = std::from_chars(digits, marked.data() + marked.size(), index);
      const auto end_of_digits = static_cast<size_t>(parsed.ptr - marked.data());
      const bool is_marker = parsed.ec == std::errc() && index < special_.size() &&
                             marked.substr(end_of_digits).starts_with(kEnd);
      const size_t length = is_marker ? end_of_digits + kEnd.size() : stem_.size();
      if (!is_marker) text.append(marked, 0, length);
      marked.remove_prefix(length);
      // Escaped by the template, it is no special token any more.
      if (is_marker && text.ends_with(special_.text(index))) {
        spans.push_back({text.size() - special_.text(index).size(), text.size()});
      }
    }
    return text.append(marked);
  }

 private:
  static constexpr std::string_view kEnd = "end";

  void MarkValue(OrderedJson& value, bool spare_thoughts) const {
    if (value.is_string()) return MarkString(value.get_ref<std::string&>(), spare_thoughts);
    if (value.is_array()) {
      for (OrderedJson& item : value) MarkValue(item, spare_thoughts);
    }
    if (!value.is_object()) return;
    OrderedJson object = OrderedJson::object();
    for (auto& [key, item] : value.items()) {
      std::string name = key;
      MarkString(name, spare_thoughts);
      MarkValue(item, spare_thoughts);
      object[name] = std::move(item);
    }
    value = std::move(object);
  }

  void MarkString(std::string& text, bool spare_thoughts) const {
    std::string out;
    size_t done = 0;
    size_t at = 0;
    for (size_t index = NextSpecial(special_, text, spare_thoughts, at);
         index != SpecialTexts::kNone; index = NextSpecial(special_, text, spare_thoughts, at)) {
      out.append(text, done, at - done);
      out += fmt::format("{}{}{}", stem_, index, kEnd);
      done = at;
    }
    if (done == 0) return;
    out.append(text, done);
    text = std::move(out);
  }

  const SpecialTexts& special_;
  std::string stem_ = "tqText";
};

// Which messages (and tools, the last unit) can be marked without changing what the template says.
class Search {
 public:
  Search(const Markers& markers, const OrderedJson& messages, const OrderedJson& tools,
         const std::string& rendered, const RenderJson& render)
      : markers_(markers),
        messages_(messages),
        tools_(tools),
        rendered_(rendered),
        render_(render) {}

  using Units = std::vector<size_t>;

  // The spans of these units, or nullopt when marking them changes the rendering.
  std::optional<std::vector<TextSpan>> Try(const Units& units) {
    ++num_renders_;
    OrderedJson messages = messages_;
    OrderedJson tools = tools_;
    for (const size_t unit : units) {
      markers_.Mark(unit < messages.size() ? messages[unit] : tools);
    }
    const Result<std::string> marked = render_(messages, tools);
    std::vector<TextSpan> spans;
    if (!marked.ok() || markers_.Strip(*marked, spans) != rendered_) return std::nullopt;
    return spans;
  }

  // Leaves out as few units as it can.
  Units Good(const Units& units) {
    constexpr int kMaxRenders = 64;
    if (num_renders_ >= kMaxRenders) return {};
    if (Try(units)) return units;
    if (units.size() == 1) return {};
    const auto middle = units.begin() + static_cast<ptrdiff_t>(units.size() / 2);
    Units good = Good(Units(units.begin(), middle));
    const Units more = Good(Units(middle, units.end()));
    good.insert(good.end(), more.begin(), more.end());
    return good;
  }

 private:
  const Markers& markers_;
  const OrderedJson& messages_;
  const OrderedJson& tools_;
  const std::string& rendered_;
  const RenderJson& render_;
  int num_renders_ = 0;
};

}  // namespace

SpecialTexts::SpecialTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  std::erase_if(texts_, [](const std::string& text) { return text.empty(); });
  for (size_t i = 0; i < texts_.size(); ++i) {
    by_first_byte_[static_cast<unsigned char>(texts_[i][0])].push_back(i);
  }
  for (std::vector<size_t>& list : by_first_byte_) {
    std::sort(list.begin(), list.end(), [this](size_t a, size_t b) {
      return texts_[a].size() != texts_[b].size() ? texts_[a].size() > texts_[b].size() : a < b;
    });
  }
}

size_t SpecialTexts::LongestAt(std::string_view text, size_t at) const {
  for (const size_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if (text.compare(at, texts_[i].size(), texts_[i]) == 0) return i;
  }
  return kNone;
}

std::vector<TextSpan> FindPlainText(const SpecialTexts& special, const OrderedJson& messages,
                                    const OrderedJson& tools, const std::string& rendered,
                                    const RenderJson& render, std::vector<std::string>& notes) {
  if (special.size() == 0) return {};
  Search::Units units;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (HasSpecial(special, messages[i], IsAssistant(messages[i]))) units.push_back(i);
  }
  if (HasSpecial(special, tools, false)) units.push_back(messages.size());
  if (units.empty()) return {};
  const Markers markers(special, rendered);
  Search search(markers, messages, tools, rendered, render);
  const Search::Units good = search.Good(units);
  for (const size_t unit : units) {
    if (std::find(good.begin(), good.end(), unit) != good.end()) continue;
    notes.push_back(fmt::format(
        "{}: text that reads like a special token is one here: the chat template looks at it",
        unit < messages.size() ? fmt::format("message {}", unit) : "tools"));
  }
  if (good.empty()) return {};
  return search.Try(good).value_or(std::vector<TextSpan>());
}

}  // namespace tq
