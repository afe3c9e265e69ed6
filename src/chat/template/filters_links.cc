// The filter urlize: addresses of the web and of mail become links.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "chat/template/compare.h"
#include "chat/template/filters.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

bool IsWord(char32_t c) { return c == '_' || IsAlnum(c); }
bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string LowerAscii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

// Finds whether a word is an address of the web, as urlize sees it.
class UrlMatcher {
 public:
  explicit UrlMatcher(std::string_view word) : word_(word), lower_(LowerAscii(word)) {}

  bool Match() const {
    const size_t http = lower_.starts_with("http://") ? 7 : lower_.starts_with("https://") ? 8 : 0;
    const size_t www = lower_.starts_with("www.") ? 4 : 0;
    if (http != 0 && (MatchHost(http) || MatchIpv4(http) || MatchIpv6(http))) return true;
    return (www != 0 && MatchHost(www)) || MatchKnownDomain();
  }

 private:
  // A port, then a path, query or fragment, each of which may be missing.
  bool MatchTail(size_t at) const {
    const auto ends = [this](size_t i) {
      return i == word_.size() || word_[i] == '/' || word_[i] == '?' || word_[i] == '#';
    };
    if (ends(at)) return true;
    if (word_[at] != ':') return false;
    int digits = 0;
    size_t i = at + 1;
    while (i < word_.size() && digits < 5) {
      size_t next = i;
      if (!IsDecimal(NextCodePoint(word_, &next))) break;
      i = next;
      ++digits;
    }
    return digits > 0 && ends(i);
  }

  // Behind the label of a domain that starts here and its dot; npos when there is none.
  size_t LabelEnd(size_t at, size_t* num_characters) const {
    *num_characters = 0;
    for (size_t i = at; i < word_.size();) {
      if (word_[i] == '.') return *num_characters > 0 ? i + 1 : std::string_view::npos;
      const char32_t c = NextCodePoint(word_, &i);
      if (!IsWord(c) && c != '%' && c != '-') break;
      ++*num_characters;
    }
    return std::string_view::npos;
  }

  bool MatchTopLevel(size_t at) const {
    size_t end = at;
    while (end < word_.size() && IsAsciiLetter(word_[end])) ++end;
    if (end - at >= 2 && end - at <= 63 && MatchTail(end)) return true;
    if (lower_.compare(at, 4, "xn--") != 0) return false;
    size_t characters = 0;
    for (size_t i = at + 4; i < word_.size();) {
      size_t next = i;
      const char32_t c = NextCodePoint(word_, &next);
      if (!IsWord(c) && c != '%') break;
      i = next;
      ++characters;
      end = i;
    }
    return characters >= 2 && characters <= 59 && MatchTail(end);
  }

  bool MatchHost(size_t at) const {
    size_t characters = 0;
    while (at != std::string_view::npos && at <= word_.size()) {
      if (MatchTopLevel(at)) return true;
      at = LabelEnd(at, &characters);
    }
    return false;
  }

  bool MatchKnownDomain() const {
    size_t characters = 0;
    size_t at = LabelEnd(0, &characters);
    while (at != std::string_view::npos && characters >= 2 && characters <= 63) {
      for (const std::string_view known :
           {"com", "net", "int", "edu", "gov", "org", "info", "mil"}) {
        if (lower_.compare(at, known.size(), known) == 0 && MatchTail(at + known.size())) {
          return true;
        }
      }
      at = LabelEnd(at, &characters);
    }
    return false;
  }

  bool MatchIpv4(size_t at) const {
    for (int part = 0; part < 4; ++part) {
      if (part > 0 && (at >= word_.size() || word_[at++] != '.')) return false;
      int digits = 0;
      while (at < word_.size() && digits < 3) {
        size_t next = at;
        if (!IsDecimal(NextCodePoint(word_, &next))) break;
        at = next;
        ++digits;
      }
      if (digits == 0) return false;
    }
    return MatchTail(at);
  }

  bool MatchIpv6(size_t at) const {
    if (at >= word_.size() || word_[at] != '[') return false;
    ++at;
    int groups = 0;
    while (at < word_.size() && word_[at] != ']') {
      int digits = 0;
      while (at < word_.size() && IsHex(word_[at]) && digits < 4) {
        ++at;
        ++digits;
      }
      const bool has_colon = at < word_.size() && word_[at] == ':';
      if (has_colon) ++at;
      if (!has_colon && (groups < 2 || digits == 0)) return false;
      ++groups;
    }
    // One group may be empty behind the first two.
    return at < word_.size() && groups >= 2 && groups <= 8 && MatchTail(at + 1);
  }

  std::string_view word_;
  std::string lower_;
};

bool IsEmail(std::string_view word) {
  const size_t at = word.rfind('@');
  const size_t dot = word.rfind('.');
  if (at == std::string_view::npos || at == 0 || dot == std::string_view::npos || dot <= at + 1) {
    return false;
  }
  bool is_first = true;
  for (size_t i = at + 1; i < word.size();) {
    const bool is_last_label = i > dot;
    const char32_t c = NextCodePoint(word, &i);
    const bool allowed = IsWord(c) || (!is_first && !is_last_label && (c == '.' || c == '-'));
    if (!allowed) return false;
    is_first = false;
  }
  return dot + 1 < word.size();
}

struct LinkStyle {
  std::string attributes;
  std::optional<int64_t> max_length;
  std::vector<std::string> schemes;
};

Result<std::string> Shortened(Runtime& rt, std::string_view url, const LinkStyle& style) {
  if (!style.max_length || static_cast<int64_t>(CodePointCount(url)) <= *style.max_length) {
    return std::string(url);
  }
  TQ_ASSIGN_OR_RETURN(const Value cut, Slice(rt, rt.String(std::string(url)), Value(),
                                             Value::Int(*style.max_length), Value()));
  return std::string(cut.text()) + "...";
}

Result<std::string> Link(Runtime& rt, std::string_view word, const LinkStyle& style) {
  if (UrlMatcher(word).Match()) {
    const bool has_scheme = word.starts_with("https://") || word.starts_with("http://");
    TQ_ASSIGN_OR_RETURN(const std::string shown, Shortened(rt, word, style));
    return fmt::format("<a href=\"{}{}\"{}>{}</a>", has_scheme ? "" : "https://", word,
                       style.attributes, shown);
  }
  constexpr std::string_view kMailto = "mailto:";
  if (word.starts_with(kMailto) && IsEmail(word.substr(kMailto.size()))) {
    return fmt::format("<a href=\"{}\">{}</a>", word, word.substr(kMailto.size()));
  }
  const bool may_be_mail = word.find('@') != std::string_view::npos && !word.starts_with("www.") &&
                           !word.starts_with('@') && word.find(':') == std::string_view::npos;
  if (may_be_mail && IsEmail(word)) {
    return fmt::format("<a href=\"mailto:{0}\">{0}</a>", word);
  }
  std::string linked(word);
  for (const std::string& scheme : style.schemes) {
    if (linked != scheme && linked.starts_with(scheme)) {
      linked = fmt::format("<a href=\"{0}\"{1}>{0}</a>", linked, style.attributes);
    }
  }
  return linked;
}

// Puts punctuation around a word aside, links the word.
Result<std::string> LinkWord(Runtime& rt, std::string_view word, const LinkStyle& style) {
  size_t begin = 0;
  while (begin < word.size()) {
    const std::string_view rest = word.substr(begin);
    const size_t size = rest[0] == '(' || rest[0] == '<' ? 1 : rest.starts_with("&lt;") ? 4 : 0;
    if (size == 0) break;
    begin += size;
  }
  size_t end = word.size();
  while (end > begin) {
    const std::string_view rest = word.substr(begin, end - begin);
    const bool is_mark = std::string_view(")>.,\n").find(rest.back()) != std::string_view::npos;
    const size_t size = is_mark ? 1 : rest.ends_with("&gt;") ? 4 : 0;
    if (size == 0) break;
    end -= size;
  }
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}};
  for (const auto& [open, close] : kPairs) {
    const std::string_view middle = word.substr(begin, end - begin);
    const size_t opened = CountText(middle, open);
    if (opened <= CountText(middle, close)) continue;
    const size_t moves = std::min(opened, CountText(word.substr(end), close));
    for (size_t i = 0; i < moves; ++i) end = word.find(close, end) + close.size();
  }
  TQ_ASSIGN_OR_RETURN(const std::string linked, Link(rt, word.substr(begin, end - begin), style));
  return std::string(word.substr(0, begin)) + linked + std::string(word.substr(end));
}

bool IsScheme(std::string_view scheme) {
  const size_t colon = scheme.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view slashes = scheme.substr(colon + 1);
  size_t characters = 0;
  for (size_t i = 0; i < colon; ++characters) {
    const char32_t c = NextCodePoint(scheme, &i);
    if (!IsWord(c) && c != '.' && c != '+' && c != '-') return false;
  }
  return characters >= 2 && (slashes.empty() || slashes == "/" || slashes == "//");
}

Result<LinkStyle> ReadLinkStyle(Runtime& rt, const Params& p) {
  LinkStyle style;
  if (p.HasValue(0)) {
    TQ_ASSIGN_OR_RETURN(style.max_length, p.Int(rt, 0, 0));
  }
  std::set<std::string> rel = {"noopener"};
  if (p.Bool(1, false)) rel.insert("nofollow");
  if (p.HasValue(3)) {
    TQ_ASSIGN_OR_RETURN(const std::string given, p.Text(rt, 3, ""));
    for (const std::string_view part : SplitWhitespace(given, -1, false)) rel.emplace(part);
  }
  std::string joined;
  for (const std::string& part : rel) joined += (joined.empty() ? "" : " ") + part;
  style.attributes = " rel=\"" + EscapeHtml(joined) + "\"";
  if (p.HasValue(2)) {
    TQ_ASSIGN_OR_RETURN(const std::string target, p.Text(rt, 2, ""));
    if (!target.empty()) style.attributes += " target=\"" + EscapeHtml(target) + "\"";
  }
  if (!p.HasValue(4)) return style;
  TQ_ASSIGN_OR_RETURN(const std::vector<Value> schemes, Iterate(rt, p[4]));
  for (const Value& scheme : schemes) {
    if (!scheme.IsString() || !IsScheme(scheme.text())) {
      TQ_ASSIGN_OR_RETURN(const std::string shown, Repr(rt, scheme));
      return rt.Fail("{} is not a valid URI scheme prefix.", shown);
    }
    style.schemes.emplace_back(scheme.text());
  }
  return style;
}

Result<Value> Urlize(Runtime& rt, const Value& v, const Params& p) {
  TQ_ASSIGN_OR_RETURN(const LinkStyle style, ReadLinkStyle(rt, p));
  TQ_ASSIGN_OR_RETURN(const Value escaped, Escaped(rt, v));
  const std::string_view text = escaped.text();
  TQ_RETURN_IF_ERROR(rt.StepBytes(text.size() * 8));
  std::string out;
  size_t word = 0;
  for (size_t i = 0; i <= text.size();) {
    const size_t at = i;
    const bool is_end = at == text.size();
    const bool is_space = !is_end && IsSpace(NextCodePoint(text, &i));
    if (is_end) ++i;
    if (!is_end && !is_space) continue;
    if (at > word) {
      TQ_ASSIGN_OR_RETURN(const std::string linked,
                          LinkWord(rt, text.substr(word, at - word), style));
      out += linked;
    }
    if (!is_end) out += text.substr(at, i - at);
    word = i;
    TQ_RETURN_IF_ERROR(rt.Step());
    TQ_RETURN_IF_ERROR(rt.CheckBytes(out.size()));
  }
  return rt.String(std::move(out));
}

constexpr FilterSpec kFilters[] = {
    {"urlize", Urlize, "trim_url_limit nofollow target rel extra_schemes"},
};

}  // namespace

std::span<const FilterSpec> LinkFilters() { return kFilters; }

}  // namespace tq::jinja
