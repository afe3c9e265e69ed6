// The filter striptags, with the entities of HTML.
#include <algorithm>
#include <array>

#include "chat/template/filters.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

struct Entity {
  std::string_view name;
  char32_t code_point;
};
constexpr Entity kEntities[] = {
#define ENTITY(name, code_point) {name, code_point},
#include "chat/template/html_entity_list.inc"
#undef ENTITY
};

const Entity* FindEntity(std::string_view name) {
  for (const Entity& entity : kEntities) {
    if (entity.name == name) return &entity;
  }
  return nullptr;
}

// What browsers make of numbers that mean Windows' characters.
constexpr std::array<char32_t, 32> kWindows = {
    0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6,  0x2030, 0x160,
    0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};

void AppendNumbered(std::string* out, uint64_t number) {
  if (number == 0 || (number >= 0xD800 && number <= 0xDFFF) || number > 0x10FFFF) {
    AppendCodePoint(out, 0xFFFD);
  } else if (number >= 0x80 && number <= 0x9F) {
    AppendCodePoint(out, kWindows[number - 0x80]);
  } else {
    const bool is_dropped =
        (number < 0x20 && number != '\t' && number != '\n' && number != '\f' && number != '\r') ||
        number == 0x7F || (number >= 0xFDD0 && number <= 0xFDEF) || (number & 0xFFFE) == 0xFFFE;
    if (!is_dropped) AppendCodePoint(out, static_cast<char32_t>(number));
  }
}

// text[at] is behind "&#". Returns the bytes used, 0 when this is no number.
size_t NumberedLength(std::string_view text, size_t at, std::string* out) {
  size_t end = at;
  const bool is_hex = end < text.size() && (text[end] == 'x' || text[end] == 'X');
  if (is_hex) ++end;
  const size_t digits = end;
  uint64_t number = 0;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (; end < text.size(); ++end) {
    const char lower = static_cast<char>(text[end] | 0x20);
    const size_t digit = kDigits.find(text[end] >= '0' && text[end] <= '9' ? text[end] : lower);
    if (digit == std::string_view::npos || digit >= (is_hex ? 16u : 10u)) break;
    number = std::min<uint64_t>(number * (is_hex ? 16 : 10) + digit, 0x110000);
  }
  if (end == digits) return 0;
  AppendNumbered(out, number);
  if (end < text.size() && text[end] == ';') ++end;
  return end - at;
}

// html.unescape(). Errors: a name of HTML that is not in the list.
Result<std::string> Unescape(Runtime& rt, std::string_view text) {
  constexpr std::string_view kEnds("\t\n\f <&#;");
  constexpr size_t kMaxName = 32;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '&') {
      out += text[i++];
      continue;
    }
    ++i;
    if (i < text.size() && text[i] == '#') {
      const size_t used = NumberedLength(text, i + 1, &out);
      if (used == 0) out += "&";
      i += used == 0 ? 0 : used + 1;
      continue;
    }
    const size_t end = std::min({text.find_first_of(kEnds, i), i + kMaxName, text.size()});
    std::string_view name = text.substr(i, end - i);
    const bool is_closed = end < text.size() && text[end] == ';' && !name.empty();
    if (is_closed && name != "apos" && FindEntity(name) == nullptr) {
      return rt.Fail("striptags: the entity '&{};' is not supported", name);
    }
    if (is_closed) {
      AppendCodePoint(&out, name == "apos" ? U'\'' : FindEntity(name)->code_point);
      i = end + 1;
      continue;
    }
    while (name.size() > 1 && FindEntity(name) == nullptr) name.remove_suffix(1);
    const Entity* entity = name.size() > 1 ? FindEntity(name) : nullptr;
    if (entity == nullptr) {
      out += '&';
    } else {
      AppendCodePoint(&out, entity->code_point);
      i += name.size();
    }
  }
  return out;
}

std::string WithoutTags(std::string_view text) {
  std::string out;
  size_t at = 0;
  size_t start = 0;
  while ((start = text.find('<', at)) != std::string_view::npos) {
    const bool is_comment = text.substr(start).starts_with("<!--");
    const size_t end = is_comment ? text.find("-->", start + 4) : text.find('>', start);
    if (end == std::string_view::npos) break;
    out += text.substr(at, start - at);
    at = end + (is_comment ? 3 : 1);
  }
  out += text.substr(at);
  return out;
}

Result<Value> StripTags(Runtime& rt, const Value& v, const Params&) {
  TQ_ASSIGN_OR_RETURN(const std::string text, Str(rt, v));
  TQ_RETURN_IF_ERROR(rt.StepBytes(text.size() * 8));
  std::string joined;
  const std::string plain = WithoutTags(text);
  for (const std::string_view word : SplitWhitespace(plain, -1, /*from_right=*/false)) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  }
  TQ_ASSIGN_OR_RETURN(std::string unescaped, Unescape(rt, joined));
  return rt.String(std::move(unescaped));
}

constexpr FilterSpec kFilters[] = {{"striptags", StripTags, ""}};

}  // namespace

std::span<const FilterSpec> HtmlFilters() { return kFilters; }

}  // namespace tq::jinja
