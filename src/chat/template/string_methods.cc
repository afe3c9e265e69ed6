// Methods of str that make or look into text.
#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/methods.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

bool IsMarkup(const Value& value) { return value.IsString() && value.As<StringObject>().markup; }

template <std::string (*Map)(std::string_view)>
Result<Value> MapText(Runtime& rt, const Value& self, const Params&) {
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size() * 4));
  return TextLike(rt, self, Map(self.text()));
}

template <Side side>
Result<Value> StripMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size()));
  if (!params.HasValue(0)) {
    return TextLike(rt, self, std::string(Strip(self.text(), side, std::nullopt)));
  }
  TQ_ASSIGN_OR_RETURN(const std::string chars, params.Text(rt, 0, ""));
  return TextLike(rt, self, std::string(Strip(self.text(), side, chars)));
}

Value ListOfTexts(Runtime& rt, const Value& like, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(TextLike(rt, like, std::string(part)));
  return rt.List(std::move(items));
}

template <bool from_right>
Result<Value> SplitMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size() * 16));
  TQ_ASSIGN_OR_RETURN(const int64_t max_splits, params.Int(rt, 1, -1));
  if (!params.HasValue(0)) {
    return ListOfTexts(rt, self, SplitWhitespace(self.text(), max_splits, from_right));
  }
  TQ_ASSIGN_OR_RETURN(const std::string separator, params.Text(rt, 0, ""));
  if (separator.empty()) return rt.Fail("empty separator");
  return ListOfTexts(rt, self, SplitOn(self.text(), separator, max_splits, from_right));
}

Result<Value> SplitLinesMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size() * 16));
  return ListOfTexts(rt, self, SplitLines(self.text(), params.Bool(0, false)));
}

template <bool from_right>
Result<Value> PartitionMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size()));
  TQ_ASSIGN_OR_RETURN(const std::string separator, params.Text(rt, 0, ""));
  if (separator.empty()) return rt.Fail("empty separator");
  const std::string_view text = self.text();
  const size_t at = from_right ? text.rfind(separator) : FindText(text, separator);
  const auto make = [&](std::string_view part) { return TextLike(rt, self, std::string(part)); };
  if (at == std::string_view::npos) {
    if (from_right) return rt.Tuple({make(""), make(""), make(text)});
    return rt.Tuple({make(text), make(""), make("")});
  }
  return rt.Tuple(
      {make(text.substr(0, at)), make(separator), make(text.substr(at + separator.size()))});
}

// The part of the text between two code point bounds, and where it begins.
struct Window {
  std::string_view text;
  int64_t begin = 0;
  bool is_empty_range = false;  // start lies beyond the end: nothing is found, not even ""
};

Result<Window> WindowOf(Runtime& rt, const Value& self, const Value& start, const Value& stop) {
  Window window;
  window.text = self.text();
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size()));
  const auto length = static_cast<int64_t>(self.As<StringObject>().length);
  TQ_ASSIGN_OR_RETURN(const auto bounds, SliceBounds(rt, length, start, stop));
  const bool beyond = start.IsIntegral() && start.integer() > length;
  window.is_empty_range = beyond || bounds.first > bounds.second;
  if (window.is_empty_range) return window;
  window.begin = bounds.first;
  const size_t begin = ByteOffset(window.text, static_cast<size_t>(bounds.first));
  const size_t end = ByteOffset(window.text, static_cast<size_t>(bounds.second));
  window.text = window.text.substr(begin, end - begin);
  return window;
}

template <bool from_right, bool must_find>
Result<Value> FindMethodOf(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const std::string needle, params.Text(rt, 0, ""));
  TQ_ASSIGN_OR_RETURN(const Window window, WindowOf(rt, self, params[1], params[2]));
  size_t at = std::string_view::npos;
  if (!window.is_empty_range) {
    at = from_right ? window.text.rfind(needle) : FindText(window.text, needle);
  }
  if (at == std::string_view::npos) {
    if (must_find) return rt.Fail("substring not found");
    return Value::Int(-1);
  }
  return Value::Int(window.begin + static_cast<int64_t>(CodePointCount(window.text.substr(0, at))));
}

Result<Value> CountMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const std::string needle, params.Text(rt, 0, ""));
  TQ_ASSIGN_OR_RETURN(const Window window, WindowOf(rt, self, params[1], params[2]));
  if (window.is_empty_range) return Value::Int(0);
  return Value::Int(static_cast<int64_t>(CountText(window.text, needle)));
}

template <bool at_end>
Result<Value> StartsOrEndsWith(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const Window window, WindowOf(rt, self, params[1], params[2]));
  std::vector<Value> choices = {params[0]};
  if (params[0].Is(Kind::kTuple)) choices = params[0].items();
  for (const Value& choice : choices) {
    if (choice.IsUndefined()) return rt.FailUndefined(choice);
    if (!choice.IsString()) {
      return rt.Fail("{} first arg must be str or a tuple of str, not {}",
                     at_end ? "endswith" : "startswith", TypeName(choice));
    }
    if (window.is_empty_range) continue;
    if (at_end ? window.text.ends_with(choice.text()) : window.text.starts_with(choice.text())) {
      return Value::Bool(true);
    }
  }
  return Value::Bool(false);
}

Result<Value> JoinMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(rt, params[0]));
  size_t total = self.text().size() * items.size();
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].IsString() && !IsMarkup(self)) {
      return rt.Fail("sequence item {}: expected str instance, {} found", i, TypeName(items[i]));
    }
    if (IsMarkup(self)) {
      TQ_ASSIGN_OR_RETURN(items[i], Escaped(rt, items[i]));
    }
    total += items[i].text().size();
  }
  TQ_RETURN_IF_ERROR(rt.CheckBytes(total));
  TQ_RETURN_IF_ERROR(rt.StepBytes(total));
  std::string text;
  text.reserve(total);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += self.text();
    text += items[i].text();
  }
  return TextLike(rt, self, std::move(text));
}

Result<Value> ReplaceMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const std::string from, params.Text(rt, 0, ""));
  TQ_ASSIGN_OR_RETURN(std::string to, params.Text(rt, 1, ""));
  TQ_ASSIGN_OR_RETURN(const int64_t count, params.Int(rt, 2, -1));
  if (IsMarkup(self) && !IsMarkup(params[1])) to = EscapeHtml(to);
  TQ_RETURN_IF_ERROR(rt.StepBytes(self.text().size() * 2));
  const size_t hits = CountText(self.text(), from);
  size_t added = 0;
  if (__builtin_mul_overflow(hits, to.size(), &added)) added = SIZE_MAX / 2;
  TQ_RETURN_IF_ERROR(rt.CheckBytes(self.text().size() + added));
  return TextLike(rt, self, ReplaceText(self.text(), from, to, count));
}

enum class Pad { kLeft, kRight, kBoth };

template <Pad pad>
Result<Value> PadMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const int64_t width, params.Int(rt, 0, 0));
  TQ_ASSIGN_OR_RETURN(const std::string fill, params.Text(rt, 1, " "));
  if (CodePointCount(fill) != 1) return rt.Fail("the fill character must be one character long");
  const int64_t missing = width - static_cast<int64_t>(self.As<StringObject>().length);
  if (missing <= 0) return self;
  TQ_RETURN_IF_ERROR(
      rt.CheckBytes(static_cast<size_t>(std::min<int64_t>(missing, INT64_MAX / 8)) * fill.size()));
  TQ_RETURN_IF_ERROR(rt.StepBytes(static_cast<size_t>(missing)));
  // Python puts the odd one left when the width is odd.
  const int64_t left = pad == Pad::kRight  ? 0
                       : pad == Pad::kLeft ? missing
                                           : missing / 2 + (missing & width & 1);
  std::string text;
  for (int64_t i = 0; i < left; ++i) text += fill;
  text += self.text();
  for (int64_t i = left; i < missing; ++i) text += fill;
  return TextLike(rt, self, std::move(text));
}

Result<Value> ZFillMethod(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const int64_t width, params.Int(rt, 0, 0));
  const int64_t missing = width - static_cast<int64_t>(self.As<StringObject>().length);
  if (missing <= 0) return self;
  TQ_RETURN_IF_ERROR(rt.CheckBytes(static_cast<size_t>(missing)));
  const std::string_view text = self.text();
  const size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  return TextLike(rt, self,
                  std::string(text.substr(0, sign)) +
                      std::string(static_cast<size_t>(missing), '0') +
                      std::string(text.substr(sign)));
}

Result<Value> ExpandTabs(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const int64_t size, params.Int(rt, 0, 8));
  const auto tabs = static_cast<size_t>(std::count(self.text().begin(), self.text().end(), '\t'));
  const auto unit = static_cast<size_t>(std::clamp<int64_t>(size, 0, INT64_MAX / 2));
  size_t added = 0;
  if (__builtin_mul_overflow(tabs, unit, &added)) added = SIZE_MAX / 2;
  TQ_RETURN_IF_ERROR(rt.CheckBytes(self.text().size() + added));
  std::string text;
  size_t column = 0;
  for (size_t i = 0; i < self.text().size();) {
    const size_t begin = i;
    const char32_t c = NextCodePoint(self.text(), &i);
    if (c == '\t') {
      const size_t fill = unit == 0 ? 0 : unit - column % unit;
      text.append(fill, ' ');
      column += fill;
      continue;
    }
    text += self.text().substr(begin, i - begin);
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return TextLike(rt, self, std::move(text));
}

template <bool at_end>
Result<Value> RemoveAffix(Runtime& rt, const Value& self, const Params& params) {
  TQ_ASSIGN_OR_RETURN(const std::string affix, params.Text(rt, 0, ""));
  std::string_view text = self.text();
  if (at_end && text.ends_with(affix)) {
    text.remove_suffix(affix.size());
  } else if (!at_end && text.starts_with(affix)) {
    text.remove_prefix(affix.size());
  }
  return TextLike(rt, self, std::string(text));
}

Result<Value> FormatMethod(Runtime& rt, const Value& self, const Params& params) {
  return FormatBraces(rt, self, params.raw());
}

Result<Value> FormatMapMethod(Runtime& rt, const Value& self, const Params& params) {
  if (!params[0].Is(Kind::kDict)) return rt.Fail("format_map() needs a dict");
  Args args;
  for (const auto& [key, value] : params[0].dict().entries) {
    if (key.IsString()) args.named.emplace_back(key.text(), value);
  }
  return FormatBraces(rt, self, args);
}

constexpr MethodSpec kMethods[] = {
    {"strip", StripMethod<Side::kBoth>, "chars"},
    {"lstrip", StripMethod<Side::kLeft>, "chars"},
    {"rstrip", StripMethod<Side::kRight>, "chars"},
    {"split", SplitMethod<false>, "sep maxsplit"},
    {"rsplit", SplitMethod<true>, "sep maxsplit"},
    {"splitlines", SplitLinesMethod, "keepends"},
    {"partition", PartitionMethod<false>, "sep", 1},
    {"rpartition", PartitionMethod<true>, "sep", 1},
    {"startswith", StartsOrEndsWith<false>, "prefix start end", 1},
    {"endswith", StartsOrEndsWith<true>, "suffix start end", 1},
    {"find", FindMethodOf<false, false>, "sub start end", 1},
    {"rfind", FindMethodOf<true, false>, "sub start end", 1},
    {"index", FindMethodOf<false, true>, "sub start end", 1},
    {"rindex", FindMethodOf<true, true>, "sub start end", 1},
    {"count", CountMethod, "sub start end", 1},
    {"join", JoinMethod, "iterable", 1},
    {"replace", ReplaceMethod, "old new count", 2},
    {"removeprefix", RemoveAffix<false>, "prefix", 1},
    {"removesuffix", RemoveAffix<true>, "suffix", 1},
    {"lower", MapText<ToLower>, ""},
    {"upper", MapText<ToUpper>, ""},
    {"casefold", MapText<CaseFold>, ""},
    {"swapcase", MapText<SwapCase>, ""},
    {"title", MapText<TitleWords>, ""},
    {"capitalize", MapText<Capitalize>, ""},
    {"center", PadMethod<Pad::kBoth>, "width fillchar", 1},
    {"ljust", PadMethod<Pad::kRight>, "width fillchar", 1},
    {"rjust", PadMethod<Pad::kLeft>, "width fillchar", 1},
    {"zfill", ZFillMethod, "width", 1},
    {"expandtabs", ExpandTabs, "tabsize"},
    {"format", FormatMethod, "*"},
    {"format_map", FormatMapMethod, "mapping", 1},
};

}  // namespace

std::span<const MethodSpec> StringMethods() { return kMethods; }

}  // namespace tq::jinja
