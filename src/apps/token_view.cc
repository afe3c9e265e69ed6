#include "apps/token_view.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tq {
namespace {

constexpr size_t kContextTokens = 6;
constexpr size_t kContextBytes = 40;

// Bytes of a context in quotes, on one line.
std::string Quoted(std::string_view bytes) {
  return OrderedJson(std::string(bytes))
      .dump(-1, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace);
}

// The start of the character that byte `at` belongs to.
size_t CharacterStart(std::string_view text, size_t at) {
  at = std::min(at, text.size());
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

std::string TextContext(const std::string& text, size_t at) {
  const size_t begin = CharacterStart(text, at > kContextBytes ? at - kContextBytes : 0);
  const size_t end = CharacterStart(text, at + kContextBytes);
  return fmt::format("{}{}{}", begin > 0 ? "..." : "", Quoted(text.substr(begin, end - begin)),
                     end < text.size() ? "..." : "");
}

std::string TokenContext(const TokenizedText& tokenized, size_t at) {
  const size_t begin = at > kContextTokens ? at - kContextTokens : 0;
  const size_t end = std::min(at + kContextTokens, tokenized.ids.size());
  std::string line = begin > 0 ? "..." : "";
  for (size_t i = begin; i < end; ++i) {
    line += i == at ? " >" : " ";
    line += fmt::format("{}:{}", tokenized.ids[i], Quoted(tokenized.pieces[i]));
  }
  if (end < tokenized.ids.size()) line += " ...";
  if (at >= tokenized.ids.size()) line += " >end";
  return line;
}

size_t FirstDifference(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  size_t at = 0;
  while (at < size && a[at] == b[at]) ++at;
  return at;
}

OrderedJson SideJson(const TokenizedText& tokenized, size_t at) {
  const size_t end = std::min(at + kContextTokens, tokenized.ids.size());
  OrderedJson ids = OrderedJson::array();
  OrderedJson pieces = OrderedJson::array();
  for (size_t i = std::min(at, end); i < end; ++i) {
    ids.push_back(tokenized.ids[i]);
    pieces.push_back(tokenized.pieces[i]);
  }
  OrderedJson side = {{"tokens", tokenized.ids.size()}};
  side["next_ids"] = std::move(ids);
  side["next_pieces"] = std::move(pieces);
  return side;
}

// As text.find, but not within the spans.
size_t FindOutside(const std::string& text, const std::string& name, size_t at,
                   const std::vector<TextSpan>& spans) {
  size_t found = text.find(name, at);
  for (const TextSpan& span : spans) {
    if (found == std::string::npos || found + name.size() <= span.begin) break;
    if (found < span.end) found = text.find(name, span.end);
  }
  return found;
}

}  // namespace

TokenizedText TokenizeText(const Tokenizer& tokenizer, std::string text,
                           std::vector<TextSpan> plain, bool add_special_tokens) {
  TokenizedText result;
  result.text = std::move(text);
  result.plain = std::move(plain);
  result.ids = tokenizer.Encode(result.text,
                                {.add_special_tokens = add_special_tokens, .plain = result.plain});
  for (const int32_t id : result.ids) {
    const bool special = tokenizer.IsSpecial(id);
    result.special.push_back(special);
    result.names.emplace_back(tokenizer.TokenText(id));
    result.pieces.push_back(special ? result.names.back() : tokenizer.TokenBytes(id));
  }
  return result;
}

std::vector<TextPiece> CutAtSpecial(const TokenizedText& tokenized) {
  std::vector<TextPiece> cut;
  const std::string& text = tokenized.text;
  size_t at = 0;
  const auto add_text = [&](size_t end) {
    if (end > at) cut.push_back({text.substr(at, end - at), false});
    at = end;
  };
  // A special token that the tokenizer adds stands in front of or behind everything: nothing of the
  // text is between it and that end.
  size_t first_text = 0;
  while (first_text < tokenized.ids.size() && tokenized.special[first_text]) ++first_text;
  for (size_t i = 0; i < tokenized.ids.size(); ++i) {
    if (!tokenized.special[i]) continue;
    const std::string& name = tokenized.pieces[i];
    const size_t found = FindOutside(text, name, at, tokenized.plain);
    const bool is_added =
        found == std::string::npos || name.empty() ||
        (i < first_text && found != at && text.find_first_not_of(" \t\r\n", at) != found);
    if (found == std::string::npos && i >= first_text) add_text(text.size());
    if (!is_added) {
      add_text(found);
      at = found + name.size();
    }
    cut.push_back({name, true});
  }
  add_text(text.size());
  return cut;
}

std::string ShowPieces(const std::vector<TextPiece>& pieces, bool colour) {
  const char* const open = colour ? "\x1b[1;36m" : "\xE2\x9F\xA6";
  const char* const close = colour ? "\x1b[0m" : "\xE2\x9F\xA7";
  std::string out;
  for (const TextPiece& piece : pieces) {
    if (piece.special) out += open;
    for (const char c : piece.text) {
      const auto byte = static_cast<unsigned char>(c);
      const bool is_control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
      if (is_control) {
        out += fmt::format("\\x{:02x}", byte);
      } else {
        out += c;
      }
    }
    if (piece.special) out += close;
  }
  return out;
}

TokenDiff CompareTokens(const TokenizedText& a, const TokenizedText& b) {
  TokenDiff diff;
  diff.equal_text = a.text == b.text;
  diff.text_byte = FirstDifference(a.text, b.text);
  diff.equal_ids = a.ids == b.ids;
  while (diff.first_token < std::min(a.ids.size(), b.ids.size()) &&
         a.ids[diff.first_token] == b.ids[diff.first_token]) {
    ++diff.first_token;
  }
  // Both walk along the text; where they are at the same byte again, a stretch ends.
  size_t i = 0;
  size_t j = 0;
  size_t byte_a = 0;
  size_t byte_b = 0;
  bool inside = false;
  while (i < a.ids.size() || j < b.ids.size()) {
    const bool both = i < a.ids.size() && j < b.ids.size();
    if (both && byte_a == byte_b && a.pieces[i] == b.pieces[j]) {
      inside = false;
      if (a.ids[i] != b.ids[j]) ++diff.other_ids;
      byte_a += a.pieces[i++].size();
      byte_b += b.pieces[j++].size();
      continue;
    }
    if (!inside) ++diff.places;
    inside = true;
    const bool take_a = j >= b.ids.size() || (i < a.ids.size() && byte_a <= byte_b);
    if (take_a) {
      byte_a += a.pieces[i++].size();
      ++diff.tokens_a;
    } else {
      byte_b += b.pieces[j++].size();
      ++diff.tokens_b;
    }
  }
  return diff;
}

std::string DiffText(const TokenDiff& diff, const TokenizedText& a, const TokenizedText& b,
                     const std::string& name_a, const std::string& name_b) {
  const size_t width = std::max(name_a.size(), name_b.size());
  const auto pair = [&](const std::string& line_a, const std::string& line_b) {
    return fmt::format("  {:{}}  {}\n  {:{}}  {}\n", name_a, width, line_a, name_b, width, line_b);
  };
  std::string out;
  if (diff.equal_text) {
    out += fmt::format("text    equal, {} bytes\n", a.text.size());
  } else {
    const auto line = 1 + std::count(a.text.begin(),
                                     a.text.begin() + static_cast<ptrdiff_t>(diff.text_byte), '\n');
    out += fmt::format("text    differs at byte {} (line {}), {} and {} bytes\n", diff.text_byte,
                       line, a.text.size(), b.text.size());
    out += pair(TextContext(a.text, diff.text_byte), TextContext(b.text, diff.text_byte));
  }
  if (diff.equal_ids) return out + fmt::format("tokens  equal, {}\n", a.ids.size());
  out += fmt::format("tokens  differ at token {}, {} and {} tokens\n", diff.first_token,
                     a.ids.size(), b.ids.size());
  out += pair(TokenContext(a, diff.first_token), TokenContext(b, diff.first_token));
  out +=
      fmt::format("        {} {} cut differently ({} and {} tokens), {} {} other ids\n",
                  diff.places, diff.places == 1 ? "place" : "places", diff.tokens_a, diff.tokens_b,
                  diff.other_ids, diff.other_ids == 1 ? "equal piece with" : "equal pieces with");
  return out;
}

OrderedJson DiffJson(const TokenDiff& diff, const TokenizedText& a, const TokenizedText& b) {
  OrderedJson json = {{"equal", diff.equal()}, {"equal_text", diff.equal_text}};
  if (!diff.equal_text) json["text_byte"] = diff.text_byte;
  json["equal_ids"] = diff.equal_ids;
  if (!diff.equal_ids) json["first_token"] = diff.first_token;
  json["places"] = diff.places;
  json["tokens_in_places"] = {diff.tokens_a, diff.tokens_b};
  json["pieces_with_other_ids"] = diff.other_ids;
  json["model"] = SideJson(a, diff.first_token);
  json["other"] = SideJson(b, diff.first_token);
  return json;
}

}  // namespace tq
