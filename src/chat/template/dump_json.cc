// json.dumps: what the tojson filter prints.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "chat/template/numbers.h"
#include "chat/template/print.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Runtime& rt, const JsonStyle& style) : rt_(rt), style_(style) {}

  Status Write(const Value& value) {
    TQ_RETURN_IF_ERROR(rt_.Step());
    TQ_RETURN_IF_ERROR(rt_.CheckBytes(out_.size()));
    switch (value.kind()) {
      case Kind::kString:
        return WriteText(value.text());
      case Kind::kList:
      case Kind::kTuple:
        return WriteItems(value.items());
      case Kind::kDict:
        return WriteDict(value.dict());
      default:
        break;
    }
    std::string scalar;
    if (!ScalarText(value, &scalar)) {
      return rt_.Fail("an object of type {} cannot be written as JSON", TypeName(value));
    }
    out_ += scalar;
    return Status::Ok();
  }
  std::string Take() { return std::move(out_); }

 private:
  static bool ScalarText(const Value& value, std::string* text) {
    switch (value.kind()) {
      case Kind::kNone:
        *text = "null";
        return true;
      case Kind::kBool:
        *text = value.integer() != 0 ? "true" : "false";
        return true;
      case Kind::kInt:
        *text = std::to_string(value.integer());
        return true;
      case Kind::kBigInt:
        *text = std::to_string(value.big_integer());
        return true;
      case Kind::kFloat:
        *text = std::isnan(value.real())   ? "NaN"
                : std::isinf(value.real()) ? (value.real() > 0 ? "Infinity" : "-Infinity")
                                           : FloatRepr(value.real());
        return true;
      default:
        return false;
    }
  }

  Status WriteText(std::string_view text) {
    TQ_RETURN_IF_ERROR(rt_.StepBytes(text.size()));
    out_ += '"';
    size_t plain = 0;  // first byte not yet copied
    for (size_t i = 0; i < text.size();) {
      const size_t begin = i;
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x7F || !style_.ensure_ascii)) {
        ++i;
        continue;
      }
      out_ += text.substr(plain, begin - plain);
      WriteEscape(NextCodePoint(text, &i));
      plain = i;
    }
    out_ += text.substr(plain);
    out_ += '"';
    return Status::Ok();
  }

  void WriteEscape(char32_t c) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\b':
        out_ += "\\b";
        return;
      case '\f':
        out_ += "\\f";
        return;
      default:
        break;
    }
    const auto code = static_cast<uint32_t>(c);
    if (code < 0x10000) {
      out_ += fmt::format("\\u{:04x}", code);
    } else {
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                          0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }

  void NewLine() {
    if (!style_.pretty) return;
    out_ += '\n';
    for (int i = 0; i < depth_; ++i) out_ += style_.indent;
  }

  Status WriteItems(const std::vector<Value>& items) {
    if (items.empty()) {
      out_ += "[]";
      return Status::Ok();
    }
    out_ += '[';
    ++depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      NewLine();
      TQ_RETURN_IF_ERROR(Write(items[i]));
    }
    --depth_;
    NewLine();
    out_ += ']';
    return Status::Ok();
  }

  Status WriteDict(const DictObject& dict) {
    if (dict.entries.empty()) {
      out_ += "{}";
      return Status::Ok();
    }
    std::vector<size_t> order(dict.entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (style_.sort_keys) {
      for (const auto& [key, unused] : dict.entries) {
        if (!key.IsString()) return rt_.Fail("tojson(sort_keys=true) needs keys that are strings");
      }
      std::sort(order.begin(), order.end(), [&dict](size_t a, size_t b) {
        return dict.entries[a].first.text() < dict.entries[b].first.text();
      });
    }
    out_ += '{';
    ++depth_;
    bool first = true;
    for (const size_t i : order) {
      const auto& [key, entry] = dict.entries[i];
      if (!first) out_ += style_.item_separator;
      first = false;
      NewLine();
      std::string scalar;
      if (key.IsString()) {
        TQ_RETURN_IF_ERROR(WriteText(key.text()));
      } else if (ScalarText(key, &scalar)) {
        out_ += '"' + scalar + '"';
      } else {
        return rt_.Fail("JSON keys must be str, int, float, bool or None, not {}", TypeName(key));
      }
      out_ += style_.key_separator;
      TQ_RETURN_IF_ERROR(Write(entry));
    }
    --depth_;
    NewLine();
    out_ += '}';
    return Status::Ok();
  }

  Runtime& rt_;
  const JsonStyle& style_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

Result<std::string> DumpJson(Runtime& rt, const Value& value, const JsonStyle& style) {
  JsonWriter writer(rt, style);
  TQ_RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

}  // namespace tq::jinja
