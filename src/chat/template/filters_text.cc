// Filters that make text.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/methods.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

template <std::string (*Map)(std::string_view)>
Result<Value> MapText(Runtime& rt, const Value& v, const Params&) {
  TQ_ASSIGN_OR_RETURN(const Value text, SoftStr(rt, v));
  TQ_RETURN_IF_ERROR(rt.StepBytes(text.text().size() * 4));
  return TextLike(rt, text, Map(text.text()));
}

// Words begin behind white space and opening punctuation only.
std::string TitleFilter(std::string_view text) {
  std::string out;
  std::string word;
  const auto flush = [&] {
    if (word.empty()) return;
    size_t first = 0;
    NextCodePoint(word, &first);
    out += ToUpper(std::string_view(word).substr(0, first));
    out += ToLower(std::string_view(word).substr(first));
    word.clear();
  };
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = NextCodePoint(text, &i);
    const bool separates = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || IsSpace(c);
    if (separates) {
      flush();
      out += text.substr(begin, i - begin);
    } else {
      word += text.substr(begin, i - begin);
    }
  }
  flush();
  return out;
}

Result<Value> Trim(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const Value text, SoftStr(rt, v));
  TQ_RETURN_IF_ERROR(rt.StepBytes(text.text().size()));
  if (!p.HasValue(0)) {
    return TextLike(rt, text, std::string(Strip(text.text(), Side::kBoth, std::nullopt)));
  }
  TQ_ASSIGN_OR_RETURN(const std::string chars, p.Text(rt, 0, ""));
  return TextLike(rt, text, std::string(Strip(text.text(), Side::kBoth, chars)));
}

Result<Value> Replace(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const std::string text, Str(rt, v));
  TQ_ASSIGN_OR_RETURN(const std::string from, Str(rt, p[0]));
  TQ_ASSIGN_OR_RETURN(const std::string to, Str(rt, p[1]));
  int64_t count = -1;
  if (p.HasValue(2)) {
    TQ_ASSIGN_OR_RETURN(count, p.Int(rt, 2, -1));
  }
  TQ_RETURN_IF_ERROR(rt.StepBytes(text.size() * 2));
  size_t added = 0;
  if (__builtin_mul_overflow(CountText(text, from), to.size(), &added)) added = SIZE_MAX / 2;
  TQ_RETURN_IF_ERROR(rt.CheckBytes(text.size() + added));
  return rt.String(ReplaceText(text, from, to, count));
}

Result<Value> Indent(Runtime& rt, const Value& v, const Params& p) {
  if (v.IsUndefined()) return rt.FailUndefined(v);
  if (!v.IsString()) return rt.Fail("indent needs a str, found {}", TypeName(v));
  std::string indention;
  if (p.Has(0) && p[0].IsString()) {
    indention = std::string(p[0].text());
  } else {
    TQ_ASSIGN_OR_RETURN(const int64_t width, p.Int(rt, 0, 4));
    TQ_RETURN_IF_ERROR(rt.CheckBytes(static_cast<size_t>(std::max<int64_t>(width, 0))));
    indention = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool blank = p.Bool(2, false);
  const std::string text = std::string(v.text()) + "\n";
  const std::vector<std::string_view> lines = SplitLines(text, /*keep_ends=*/false);
  size_t added = 0;
  if (__builtin_mul_overflow(lines.size() + 1, indention.size() + 1, &added)) added = SIZE_MAX / 2;
  TQ_RETURN_IF_ERROR(rt.CheckBytes(text.size() + added));
  TQ_RETURN_IF_ERROR(rt.StepBytes(text.size() + added));
  std::string out = p.Bool(1, false) ? indention : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (blank || !lines[i].empty())) out += indention;
    out += lines[i];
  }
  return TextLike(rt, v, std::move(out));
}

Result<Value> Truncate(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const int64_t length, p.Int(rt, 0, 255));
  TQ_ASSIGN_OR_RETURN(const std::string end, p.Text(rt, 2, "..."));
  int64_t leeway = 5;
  if (p.HasValue(3)) {
    TQ_ASSIGN_OR_RETURN(leeway, p.Int(rt, 3, 5));
  }
  const auto end_length = static_cast<int64_t>(CodePointCount(end));
  if (length < end_length) {
    return rt.Fail("truncate: expected a length of at least {}, found {}", end_length, length);
  }
  if (leeway < 0) return rt.Fail("truncate: expected a leeway of at least 0, found {}", leeway);
  TQ_ASSIGN_OR_RETURN(const int64_t have, Length(rt, v));
  if (have <= length || have - length <= leeway) return v;
  TQ_ASSIGN_OR_RETURN(const Value cut,
                      Slice(rt, v, Value(), Value::Int(length - end_length), Value()));
  if (!cut.IsString()) return rt.Fail("truncate needs a str, found {}", TypeName(v));
  std::string_view kept = cut.text();
  if (!p.Bool(1, false)) {
    const size_t space = kept.rfind(' ');
    if (space != std::string_view::npos) kept = kept.substr(0, space);
  }
  return Arithmetic(rt, ExprKind::kAdd, TextLike(rt, v, std::string(kept)),
                    p.Has(2) ? p[2] : rt.String(end));
}

Result<Value> Center(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const Value text, SoftStr(rt, v));
  Args args;
  args.positional.push_back(p.Has(0) ? p[0] : Value::Int(80));
  for (const MethodSpec& method : StringMethods()) {
    if (method.name != "center") continue;
    TQ_ASSIGN_OR_RETURN(const Params bound,
                        Params::Bind(rt, "center", method.params, method.required, args));
    return method.run(rt, text, bound);
  }
  return text;
}

Result<Value> Format(Runtime& rt, const Value& v, const Params& p) {
  const Args& args = p.raw();
  if (!args.positional.empty() && !args.named.empty()) {
    return rt.Fail("format takes positional or named arguments, not both");
  }
  TQ_ASSIGN_OR_RETURN(const Value text, SoftStr(rt, v));
  if (args.named.empty()) return FormatPercent(rt, text, rt.Tuple(args.positional));
  DictBuilder dict(rt);
  for (const auto& [name, value] : args.named) dict.Set(name, value);
  return FormatPercent(rt, text, dict.Take());
}

Result<Value> String(Runtime& rt, const Value& v, const Params&) { return SoftStr(rt, v); }

Result<Value> Safe(Runtime& rt, const Value& v, const Params&) {
  TQ_ASSIGN_OR_RETURN(std::string text, Str(rt, v));
  return rt.String(std::move(text), /*markup=*/true);
}

Result<Value> Escape(Runtime& rt, const Value& v, const Params&) { return Escaped(rt, v); }

Result<Value> ForceEscape(Runtime& rt, const Value& v, const Params&) {
  TQ_ASSIGN_OR_RETURN(std::string text, Str(rt, v));
  return Escaped(rt, rt.String(std::move(text)));
}

std::string UrlQuote(std::string_view text, bool for_query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query);
    if (plain) {
      out += c;
    } else if (c == ' ' && for_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Result<Value> UrlEncode(Runtime& rt, const Value& v, const Params&) {
  if (v.IsString() || !IsIterable(v)) {
    TQ_ASSIGN_OR_RETURN(const std::string text, Str(rt, v));
    TQ_RETURN_IF_ERROR(rt.CheckBytes(text.size() * 3));
    return rt.String(UrlQuote(text, /*for_query=*/false));
  }
  const Value pairs = v.Is(Kind::kDict) ? rt.View(v, ViewObject::What::kItems) : v;
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(rt, pairs));
  std::string out;
  for (const Value& item : items) {
    TQ_ASSIGN_OR_RETURN(const std::vector<Value> pair, Iterate(rt, item));
    if (pair.size() != 2) return rt.Fail("urlencode needs pairs of a name and a value");
    TQ_ASSIGN_OR_RETURN(const std::string key, Str(rt, pair[0]));
    TQ_ASSIGN_OR_RETURN(const std::string value, Str(rt, pair[1]));
    if (!out.empty()) out += '&';
    out += UrlQuote(key, true) + "=" + UrlQuote(value, true);
    TQ_RETURN_IF_ERROR(rt.CheckBytes(out.size()));
  }
  return rt.String(std::move(out));
}

Result<Value> XmlAttr(Runtime& rt, const Value& v, const Params& p) {
  if (!v.Is(Kind::kDict)) return rt.Fail("xmlattr needs a dict, found {}", TypeName(v));
  std::string out;
  for (const auto& [key, value] : v.dict().entries) {
    if (value.Is(Kind::kNone) || value.IsUndefined()) continue;
    TQ_ASSIGN_OR_RETURN(const Value name, Escaped(rt, key));
    TQ_ASSIGN_OR_RETURN(const Value text, Escaped(rt, value));
    if (!key.IsString() || key.text().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      return rt.Fail("invalid character in an attribute name");
    }
    if (!out.empty() || p.Bool(0, true)) out += ' ';
    out += std::string(name.text()) + "=\"" + std::string(text.text()) + "\"";
    TQ_RETURN_IF_ERROR(rt.CheckBytes(out.size()));
  }
  return rt.String(std::move(out));
}

Result<Value> WordCount(Runtime& rt, const Value& v, const Params&) {
  TQ_ASSIGN_OR_RETURN(const Value text, SoftStr(rt, v));
  TQ_RETURN_IF_ERROR(rt.StepBytes(text.text().size() * 4));
  int64_t words = 0;
  bool in_word = false;
  for (size_t i = 0; i < text.text().size();) {
    const char32_t c = NextCodePoint(text.text(), &i);
    const bool is_word = c == '_' || IsAlnum(c);
    if (is_word && !in_word) ++words;
    in_word = is_word;
  }
  return Value::Int(words);
}

Result<Value> ToJson(Runtime& rt, const Value& v, const Params& p) {
  JsonStyle style;
  style.ensure_ascii = p.Bool(0, false);
  style.sort_keys = p.Bool(3, false);
  if (p.HasValue(1)) {
    style.pretty = true;
    style.item_separator = ",";
    if (p[1].IsString()) {
      style.indent = std::string(p[1].text());
    } else {
      TQ_ASSIGN_OR_RETURN(const int64_t width, p.Int(rt, 1, 0));
      TQ_RETURN_IF_ERROR(rt.CheckBytes(static_cast<size_t>(std::max<int64_t>(width, 0))));
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (p.HasValue(2)) {
    TQ_ASSIGN_OR_RETURN(const std::vector<Value> separators, Iterate(rt, p[2]));
    if (separators.size() != 2 || !separators[0].IsString() || !separators[1].IsString()) {
      return rt.Fail("tojson: separators must be two strings");
    }
    style.item_separator = std::string(separators[0].text());
    style.key_separator = std::string(separators[1].text());
  }
  TQ_ASSIGN_OR_RETURN(std::string text, DumpJson(rt, v, style));
  return rt.String(std::move(text));
}

constexpr FilterSpec kFilters[] = {
    {"trim", Trim, "chars"},
    {"lower", MapText<ToLower>, ""},
    {"upper", MapText<ToUpper>, ""},
    {"capitalize", MapText<Capitalize>, ""},
    {"title", MapText<TitleFilter>, ""},
    {"replace", Replace, "old new count", 2},
    {"indent", Indent, "width first blank"},
    {"truncate", Truncate, "length killwords end leeway"},
    {"center", Center, "width"},
    {"format", Format, "*"},
    {"string", String, ""},
    {"safe", Safe, ""},
    {"e", Escape, ""},
    {"escape", Escape, ""},
    {"forceescape", ForceEscape, ""},
    {"urlencode", UrlEncode, ""},
    {"xmlattr", XmlAttr, "autospace"},
    {"wordcount", WordCount, ""},
    {"tojson", ToJson, "ensure_ascii indent separators sort_keys"},
};

}  // namespace

std::span<const FilterSpec> TextFilters() { return kFilters; }

}  // namespace tq::jinja
