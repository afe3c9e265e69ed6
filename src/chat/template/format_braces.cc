// str.format
#include "chat/template/format_spec.h"
#include "chat/template/numbers.h"
#include "chat/template/operators.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

class BraceFormatter {
 public:
  BraceFormatter(Runtime& rt, const Args& args, bool markup)
      : rt_(rt), args_(args), markup_(markup) {}

  Result<std::string> Run(std::string_view text, int depth) {
    std::string out;
    size_t at = 0;
    while (at < text.size()) {
      const char c = text[at++];
      if (c != '{' && c != '}') {
        out += c;
        continue;
      }
      if (at < text.size() && text[at] == c) {
        out += c;
        ++at;
        continue;
      }
      if (c == '}') return rt_.Fail("single '}}' encountered in format string");
      if (depth > 1) return rt_.Fail("max string recursion exceeded");
      // A field ends at its own closing brace; its specifier may hold fields.
      const size_t begin = at;
      int open = 1;
      while (at < text.size() && open > 0) {
        if (text[at] == '{') ++open;
        if (text[at] == '}') --open;
        ++at;
      }
      if (open > 0) return rt_.Fail("expected '}}' before end of string");
      TQ_ASSIGN_OR_RETURN(const std::string field,
                          Field(text.substr(begin, at - 1 - begin), depth));
      out += field;
      TQ_RETURN_IF_ERROR(rt_.CheckBytes(out.size()));
      TQ_RETURN_IF_ERROR(rt_.Step());
    }
    return out;
  }

 private:
  Result<std::string> Field(std::string_view field, int depth) {
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    std::string_view rest = field.substr(name_end);
    char conversion = 0;
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
        return rt_.Fail("malformed conversion in a format string");
      }
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    if (!rest.empty()) rest.remove_prefix(1);
    TQ_ASSIGN_OR_RETURN(Value value, Lookup(field.substr(0, name_end)));
    if (conversion == 'r' || conversion == 'a') {
      std::string text;
      if (conversion == 'a' && value.IsString()) {
        text = ReprText(value.text(), /*ascii_only=*/true);
      } else {
        TQ_ASSIGN_OR_RETURN(text, Repr(rt_, value));
      }
      value = rt_.String(std::move(text));
    } else if (conversion == 's') {
      TQ_ASSIGN_OR_RETURN(value, SoftStr(rt_, value));
    } else if (conversion != 0) {
      return rt_.Fail("unknown conversion specifier '{}'", conversion);
    }
    TQ_ASSIGN_OR_RETURN(const std::string spec_text, Run(rest, depth + 1));
    TQ_ASSIGN_OR_RETURN(const FormatSpec spec, ParseFormatSpec(rt_, spec_text));
    TQ_ASSIGN_OR_RETURN(std::string text, FormatValue(rt_, value, spec));
    const bool is_markup = value.IsString() && value.As<StringObject>().markup;
    if (markup_ && !is_markup) text = EscapeHtml(text);
    return text;
  }

  // "0", "", "name", followed by .attribute and [item] parts.
  Result<Value> Lookup(std::string_view path) {
    const size_t first_end = std::min(path.find_first_of(".["), path.size());
    TQ_ASSIGN_OR_RETURN(Value value, Argument(path.substr(0, first_end)));
    path.remove_prefix(first_end);
    while (!path.empty()) {
      const bool is_attribute = path[0] == '.';
      if (!is_attribute && path[0] != '[') return rt_.Fail("malformed field in a format string");
      path.remove_prefix(1);
      const size_t end =
          is_attribute ? std::min(path.find_first_of(".["), path.size()) : path.find(']');
      if (end == std::string_view::npos) return rt_.Fail("missing ']' in format string");
      const std::string_view name = path.substr(0, end);
      if (name.empty()) return rt_.Fail("empty attribute in format string");
      path.remove_prefix(is_attribute ? end : end + 1);
      const Value text = rt_.String(std::string(name));
      if (is_attribute) {
        TQ_ASSIGN_OR_RETURN(value, GetAttr(rt_, value, text));
        continue;
      }
      int64_t index = 0;
      const bool is_index = name.find_first_not_of("0123456789") == std::string_view::npos &&
                            ParseInt(name, 10, &index) == IntParse::kOk;
      TQ_ASSIGN_OR_RETURN(value, GetItem(rt_, value, is_index ? Value::Int(index) : text));
    }
    return value;
  }

  Result<Value> Argument(std::string_view name) {
    int64_t index = 0;
    if (name.empty()) {
      if (uses_numbers_) {
        return rt_.Fail("cannot switch from manual field specification to automatic numbering");
      }
      uses_automatic_ = true;
      index = next_++;
    } else if (name.find_first_not_of("0123456789") == std::string_view::npos) {
      if (uses_automatic_) {
        return rt_.Fail("cannot switch from automatic field numbering to manual specification");
      }
      uses_numbers_ = true;
      if (ParseInt(name, 10, &index) != IntParse::kOk) index = INT64_MAX;
    } else {
      for (const auto& [key, value] : args_.named) {
        if (key == name) return value;
      }
      return rt_.Fail("the format's key '{}' is missing", name);
    }
    if (index >= static_cast<int64_t>(args_.positional.size())) {
      return rt_.Fail("replacement index {} out of range for positional arguments", index);
    }
    return args_.positional[static_cast<size_t>(index)];
  }

  Runtime& rt_;
  const Args& args_;
  bool markup_;
  int64_t next_ = 0;
  bool uses_numbers_ = false;
  bool uses_automatic_ = false;
};

}  // namespace

Result<Value> FormatBraces(Runtime& rt, const Value& format, const Args& args) {
  BraceFormatter formatter(rt, args, format.As<StringObject>().markup);
  TQ_ASSIGN_OR_RETURN(std::string text, formatter.Run(format.text(), 0));
  return TextLike(rt, format, std::move(text));
}

}  // namespace tq::jinja
