// Filters that break text into lines: wordwrap, as Python's textwrap does, and pprint.
#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

using Chars = std::u32string;
using CharsView = std::u32string_view;

Chars Decode(std::string_view text) {
  Chars chars;
  for (size_t i = 0; i < text.size();) chars += NextCodePoint(text, &i);
  return chars;
}

std::string Encode(CharsView chars) {
  std::string text;
  for (const char32_t c : chars) AppendCodePoint(&text, c);
  return text;
}

bool IsBreak(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsWord(char32_t c) { return c == '_' || IsAlnum(c); }
bool IsLetter(char32_t c) { return IsWord(c) && !IsDecimal(c); }
bool IsWordOrMark(char32_t c) {
  return IsWord(c) || CharsView(U"!\"'&.,?").find(c) != CharsView::npos;
}
bool IsBlank(CharsView chars) { return std::all_of(chars.begin(), chars.end(), IsSpace); }

// Cuts a line into pieces between which it may be broken.
class Chunker {
 public:
  Chunker(CharsView line, bool at_hyphens) : line_(line), at_hyphens_(at_hyphens) {}

  std::vector<CharsView> Run() const {
    std::vector<CharsView> chunks;
    for (size_t at = 0; at < line_.size();) {
      const size_t end = IsBreak(line_[at]) ? SpaceEnd(at) : WordEnd(at);
      chunks.push_back(line_.substr(at, end - at));
      at = end;
    }
    return chunks;
  }

 private:
  char32_t At(size_t i) const { return i < line_.size() ? line_[i] : U'\0'; }

  size_t SpaceEnd(size_t at) const {
    while (at < line_.size() && IsBreak(line_[at])) ++at;
    return at;
  }

  // Behind dashes that join two words; `at` when there are none.
  size_t DashEnd(size_t at) const {
    if (at == 0 || !IsWordOrMark(line_[at - 1])) return at;
    size_t end = at;
    while (At(end) == '-') ++end;
    return end - at >= 2 && IsWord(At(end)) ? end : at;
  }

  // A hyphen between letters.
  bool BreaksBehindHyphen(size_t i) const {
    if (At(i) != '-' || i < 2 || !IsLetter(line_[i - 1])) return false;
    const bool before =
        IsLetter(line_[i - 2]) || (line_[i - 2] == '-' && i >= 3 && IsLetter(line_[i - 3]));
    const size_t next = At(i + 2) == '-' ? i + 3 : i + 2;
    return before && IsLetter(At(i + 1)) && IsLetter(At(next));
  }

  size_t WordEnd(size_t at) const {
    if (at_hyphens_ && DashEnd(at) != at) return DashEnd(at);
    for (size_t end = at + 1;; ++end) {
      if (end >= line_.size() || IsBreak(line_[end])) return end;
      if (!at_hyphens_) continue;
      if (BreaksBehindHyphen(end)) return end + 1;
      if (DashEnd(end) != end) return end;
    }
  }

  CharsView line_;
  bool at_hyphens_;
};

struct WrapStyle {
  size_t width = 79;
  bool break_long_words = true;
  bool at_hyphens = true;
};

// How much of a word that is longer than a line goes into `space` columns.
size_t LongWordCut(CharsView word, size_t space, const WrapStyle& style) {
  if (!style.at_hyphens || word.size() <= space) return space;
  const size_t hyphen = space == 0 ? CharsView::npos : word.rfind(U'-', space - 1);
  if (hyphen == CharsView::npos || hyphen == 0) return space;
  return word.find_first_not_of(U'-') < hyphen ? hyphen + 1 : space;
}

std::vector<Chars> WrapLine(CharsView line, bool split_at_hyphens, const WrapStyle& style) {
  std::vector<CharsView> chunks = Chunker(line, split_at_hyphens).Run();
  std::reverse(chunks.begin(), chunks.end());
  std::vector<Chars> lines;
  while (!chunks.empty()) {
    std::vector<CharsView> current;
    size_t length = 0;
    if (!lines.empty() && IsBlank(chunks.back())) chunks.pop_back();
    while (!chunks.empty() && length + chunks.back().size() <= style.width) {
      length += chunks.back().size();
      current.push_back(chunks.back());
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().size() > style.width) {
      if (style.break_long_words) {
        const size_t cut = LongWordCut(chunks.back(), style.width - length, style);
        current.push_back(chunks.back().substr(0, cut));
        chunks.back().remove_prefix(cut);
      } else if (current.empty()) {
        current.push_back(chunks.back());
        chunks.pop_back();
      }
    }
    if (!current.empty() && IsBlank(current.back())) current.pop_back();
    if (current.empty()) continue;
    Chars joined;
    for (const CharsView chunk : current) joined += chunk;
    lines.push_back(std::move(joined));
  }
  return lines;
}

Result<Value> WordWrap(Runtime& rt, const Value& v, const Params& p) {
  if (v.IsUndefined()) return rt.FailUndefined(v);
  if (!v.IsString()) return rt.Fail("wordwrap needs a str, found {}", TypeName(v));
  TQ_ASSIGN_OR_RETURN(const int64_t width, p.Int(rt, 0, 79));
  TQ_ASSIGN_OR_RETURN(const std::string separator,
                      p.HasValue(2) ? p.Text(rt, 2, "\n") : Result<std::string>("\n"));
  TQ_RETURN_IF_ERROR(rt.StepBytes(v.text().size() * 8));
  WrapStyle style;
  style.break_long_words = p.Bool(1, true);
  style.at_hyphens = p.Bool(3, true);
  // Python asks for True itself where it cuts, for any truth where it breaks.
  const bool split_at_hyphens = !p.Has(3) || (p[3].Is(Kind::kBool) && style.at_hyphens);
  std::string out;
  bool first = true;
  for (const std::string_view line : SplitLines(v.text(), /*keep_ends=*/false)) {
    if (width <= 0) return rt.Fail("invalid width {} (must be > 0)", width);
    style.width = static_cast<size_t>(width);
    if (!first) out += separator;
    first = false;
    bool first_wrapped = true;
    for (const Chars& wrapped : WrapLine(Decode(line), split_at_hyphens, style)) {
      if (!first_wrapped) out += separator;
      first_wrapped = false;
      out += Encode(wrapped);
      TQ_RETURN_IF_ERROR(rt.StepBytes(separator.size()));
      TQ_RETURN_IF_ERROR(rt.CheckBytes(out.size()));
    }
  }
  return rt.String(std::move(out));
}

// pprint.pformat: one line when it fits into 80 columns, else an item a line; keys sorted.
class PrettyPrinter {
 public:
  explicit PrettyPrinter(Runtime& rt) : rt_(rt) {}

  // indent: columns in front; allowance: columns needed behind.
  Status Format(const Value& value, size_t indent, size_t allowance, int level) {
    TQ_ASSIGN_OR_RETURN(const std::string flat, Flat(value));
    if (Fits(CodePointCount(flat), indent + allowance)) return Write(flat);
    const bool is_plain_text = value.IsString() && !value.As<StringObject>().markup;
    if (value.Is(Kind::kDict)) return FormatDict(value, indent, allowance, level + 1);
    if (value.Is(Kind::kList) || value.Is(Kind::kTuple)) {
      return FormatItems(value, indent, allowance, level + 1);
    }
    if (is_plain_text && !value.text().empty()) {
      return FormatText(value.text(), indent, allowance, level + 1);
    }
    return Write(flat);
  }

  std::string Take() { return std::move(out_); }

 private:
  static constexpr size_t kWidth = 80;

  static bool Fits(size_t length, size_t taken) { return length + taken <= kWidth; }

  Status Write(std::string_view text) {
    out_ += text;
    TQ_RETURN_IF_ERROR(rt_.StepBytes(text.size()));
    return rt_.CheckBytes(out_.size());
  }
  Status NewLine(size_t indent) { return Write("\n" + std::string(indent, ' ')); }

  Result<std::vector<size_t>> KeyOrder(const DictObject& dict) {
    const auto& entries = dict.entries;
    return SortedOrder(rt_, entries.size(), [&](size_t a, size_t b) -> Result<bool> {
      const Value& x = entries[a].first;
      const Value& y = entries[b].first;
      Result<bool> less = Compare(rt_, CompareOp::kLt, x, y);
      if (less.ok() || less.status().code() == StatusCode::kOutOfMemory) return less;
      return TypeName(x) < TypeName(y);
    });
  }

  // repr() with sorted keys.
  Result<std::string> Flat(const Value& value) {
    TQ_RETURN_IF_ERROR(rt_.Step());
    const bool is_tuple = value.Is(Kind::kTuple);
    if (!value.Is(Kind::kDict) && !value.Is(Kind::kList) && !is_tuple) return Repr(rt_, value);
    std::string flat = value.Is(Kind::kDict) ? "{" : is_tuple ? "(" : "[";
    const char* separator = "";
    const auto add = [&](const std::string& text) -> Status {
      flat += separator + text;
      separator = ", ";
      TQ_RETURN_IF_ERROR(rt_.StepBytes(flat.size()));
      return rt_.CheckBytes(flat.size());
    };
    if (value.Is(Kind::kDict)) {
      TQ_ASSIGN_OR_RETURN(const std::vector<size_t> order, KeyOrder(value.dict()));
      for (const size_t i : order) {
        const auto& [key, item] = value.dict().entries[i];
        TQ_ASSIGN_OR_RETURN(const std::string key_text, Flat(key));
        TQ_ASSIGN_OR_RETURN(const std::string item_text, Flat(item));
        TQ_RETURN_IF_ERROR(add(key_text + ": " + item_text));
      }
      return flat + "}";
    }
    for (const Value& item : value.items()) {
      TQ_ASSIGN_OR_RETURN(const std::string text, Flat(item));
      TQ_RETURN_IF_ERROR(add(text));
    }
    if (!is_tuple) return flat + "]";
    return flat + (value.items().size() == 1 ? ",)" : ")");
  }

  Status FormatDict(const Value& value, size_t indent, size_t allowance, int level) {
    const auto& entries = value.dict().entries;
    TQ_ASSIGN_OR_RETURN(const std::vector<size_t> order, KeyOrder(value.dict()));
    TQ_RETURN_IF_ERROR(Write("{"));
    for (size_t i = 0; i < order.size(); ++i) {
      const auto& [key, item] = entries[order[i]];
      if (i > 0) {
        TQ_RETURN_IF_ERROR(Write(","));
        TQ_RETURN_IF_ERROR(NewLine(indent + 1));
      }
      TQ_ASSIGN_OR_RETURN(const std::string key_text, Flat(key));
      TQ_RETURN_IF_ERROR(Write(key_text + ": "));
      const size_t behind = i + 1 == order.size() ? allowance + 1 : 1;
      TQ_RETURN_IF_ERROR(Format(item, indent + 1 + CodePointCount(key_text) + 2, behind, level));
    }
    return Write("}");
  }

  Status FormatItems(const Value& value, size_t indent, size_t allowance, int level) {
    const std::vector<Value>& items = value.items();
    const bool is_tuple = value.Is(Kind::kTuple);
    const std::string end = !is_tuple ? "]" : items.size() == 1 ? ",)" : ")";
    TQ_RETURN_IF_ERROR(Write(is_tuple ? "(" : "["));
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        TQ_RETURN_IF_ERROR(Write(","));
        TQ_RETURN_IF_ERROR(NewLine(indent + 1));
      }
      const size_t behind = i + 1 == items.size() ? allowance + end.size() : 1;
      TQ_RETURN_IF_ERROR(Format(items[i], indent + 1, behind, level));
    }
    return Write(end);
  }

  static size_t ReprLength(std::string_view text) { return CodePointCount(ReprText(text)); }

  // Words, each with the white space behind it.
  static std::vector<std::string_view> WordsOf(std::string_view line) {
    std::vector<std::string_view> words;
    size_t begin = 0;
    bool in_space = false;
    for (size_t i = 0; i < line.size();) {
      const size_t at = i;
      const bool is_space = IsSpace(NextCodePoint(line, &i));
      if (in_space && !is_space) {
        words.push_back(line.substr(begin, at - begin));
        begin = at;
      }
      in_space = is_space;
    }
    words.push_back(line.substr(begin));
    return words;
  }

  // Adds the pieces of a line that is too long.
  Status CutLine(std::string_view line, size_t taken, size_t allowance, bool is_last,
                 std::vector<std::string>& chunks) {
    std::string current;
    const std::vector<std::string_view> words = WordsOf(line);
    for (size_t j = 0; j < words.size(); ++j) {
      const std::string candidate = current + std::string(words[j]);
      TQ_RETURN_IF_ERROR(rt_.StepBytes(candidate.size() * 4));
      const size_t behind = is_last && j + 1 == words.size() ? allowance : 0;
      if (Fits(ReprLength(candidate), taken + behind)) {
        current = candidate;
        continue;
      }
      if (!current.empty()) chunks.push_back(ReprText(current));
      current = std::string(words[j]);
    }
    if (!current.empty()) chunks.push_back(ReprText(current));
    return Status::Ok();
  }

  Status FormatText(std::string_view text, size_t indent, size_t allowance, int level) {
    const bool is_outermost = level == 1;
    if (is_outermost) {
      ++indent;
      ++allowance;
    }
    std::vector<std::string> chunks;
    std::string repr;
    const std::vector<std::string_view> lines = SplitLines(text, /*keep_ends=*/true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool is_last = i + 1 == lines.size();
      repr = ReprText(lines[i]);
      if (Fits(CodePointCount(repr), indent + (is_last ? allowance : 0))) {
        chunks.push_back(repr);
      } else {
        TQ_RETURN_IF_ERROR(CutLine(lines[i], indent, allowance, is_last, chunks));
      }
    }
    if (chunks.size() == 1) return Write(repr);
    if (is_outermost) TQ_RETURN_IF_ERROR(Write("("));
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) TQ_RETURN_IF_ERROR(NewLine(indent));
      TQ_RETURN_IF_ERROR(Write(chunks[i]));
    }
    return is_outermost ? Write(")") : Status::Ok();
  }

  Runtime& rt_;
  std::string out_;
};

Result<Value> PPrint(Runtime& rt, const Value& v, const Params&) {
  PrettyPrinter printer(rt);
  TQ_RETURN_IF_ERROR(printer.Format(v, 0, 0, 0));
  return rt.String(printer.Take());
}

constexpr FilterSpec kFilters[] = {
    {"wordwrap", WordWrap, "width break_long_words wrapstring break_on_hyphens"},
    {"pprint", PPrint, ""},
};

}  // namespace

std::span<const FilterSpec> LayoutFilters() { return kFilters; }

}  // namespace tq::jinja
