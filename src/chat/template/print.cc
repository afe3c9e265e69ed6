#include "chat/template/print.h"

#include "chat/template/numbers.h"
#include "chat/template/runtime.h"
#include "chat/template/text.h"

namespace tq::jinja {

std::string_view TypeName(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.As<StringObject>().markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView:
      switch (value.As<ViewObject>().what) {
        case ViewObject::What::kKeys:
          return "dict_keys";
        case ViewObject::What::kValues:
          return "dict_values";
        case ViewObject::What::kItems:
          return "dict_items";
      }
      return "dict_items";
    case Kind::kRange:
      return "range";
    case Kind::kGenerator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
    case Kind::kCallable:
      return value.As<CallableObject>().macro != nullptr ? "Macro" : "function";
  }
  return "object";
}

std::string DescribeType(const Value& value) {
  if (value.Is(Kind::kNone)) return "None";
  return fmt::format("'{} object'", TypeName(value));
}

std::string ReprText(std::string_view text, bool ascii_only) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = NextCodePoint(text, &i);
    const auto code = static_cast<uint32_t>(c);
    if (c == '\\' || c == static_cast<char32_t>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x7F ? c >= 0x20 : (!ascii_only && IsPrintable(c))) {
      out += text.substr(begin, i - begin);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", code);
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += fmt::format("\\U{:08x}", code);
    }
  }
  out += quote;
  return out;
}

namespace {

class ReprWriter {
 public:
  explicit ReprWriter(Runtime& rt) : rt_(rt) {}

  Status Write(const Value& value) {
    TQ_RETURN_IF_ERROR(rt_.Step());
    TQ_RETURN_IF_ERROR(rt_.CheckBytes(out_.size()));
    // Namespaces may contain themselves.
    if (depth_ > kMaxValueDepth) return rt_.Fail("a value that contains itself cannot be printed");
    ++depth_;
    TQ_RETURN_IF_ERROR(WriteInner(value));
    --depth_;
    return Status::Ok();
  }
  std::string Take() { return std::move(out_); }

 private:
  Status WriteInner(const Value& value) {
    switch (value.kind()) {
      case Kind::kMissing:
      case Kind::kUndefined:
        out_ += "Undefined";
        break;
      case Kind::kNone:
        out_ += "None";
        break;
      case Kind::kBool:
        out_ += value.integer() != 0 ? "True" : "False";
        break;
      case Kind::kInt:
        out_ += std::to_string(value.integer());
        break;
      case Kind::kBigInt:
        out_ += std::to_string(value.big_integer());
        break;
      case Kind::kFloat:
        out_ += FloatRepr(value.real());
        break;
      case Kind::kString: {
        TQ_RETURN_IF_ERROR(rt_.StepBytes(value.text().size()));
        const bool markup = value.As<StringObject>().markup;
        if (markup) out_ += "Markup(";
        out_ += ReprText(value.text());
        if (markup) out_ += ')';
        break;
      }
      case Kind::kList:
        return WriteItems(value.items(), '[', ']');
      case Kind::kTuple:
        return WriteItems(value.items(), '(', ')');
      case Kind::kDict:
        return WriteDict(value.dict());
      case Kind::kView:
        return WriteView(value.As<ViewObject>());
      case Kind::kRange: {
        const auto& range = value.As<RangeObject>();
        out_ += fmt::format("range({}, {}", range.start, range.stop);
        if (range.step != 1) out_ += fmt::format(", {}", range.step);
        out_ += ')';
        break;
      }
      case Kind::kNamespace: {
        out_ += "<Namespace ";
        TQ_RETURN_IF_ERROR(WriteDict(value.As<NamespaceObject>().attributes));
        out_ += '>';
        break;
      }
      case Kind::kLoop: {
        auto& loop = value.As<LoopObject>();
        TQ_ASSIGN_OR_RETURN(const int64_t length, loop.Length(rt_));
        out_ += fmt::format("<LoopContext {}/{}>", loop.index0 + 1, length);
        break;
      }
      case Kind::kCallable: {
        const auto& callable = value.As<CallableObject>();
        out_ += callable.macro == nullptr ? fmt::format("<function {}>", callable.name)
                                          : fmt::format("<Macro {}>", ReprText(callable.name));
        break;
      }
      case Kind::kGenerator:
      case Kind::kCycler:
      case Kind::kJoiner:
        out_ += fmt::format("<{} object>", TypeName(value));
        break;
    }
    return Status::Ok();
  }

  Status WriteItems(const std::vector<Value>& items, char open, char close) {
    out_ += open;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      TQ_RETURN_IF_ERROR(Write(items[i]));
    }
    if (open == '(' && items.size() == 1) out_ += ',';
    out_ += close;
    return Status::Ok();
  }

  Status WriteDict(const DictObject& dict) {
    out_ += '{';
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) out_ += ", ";
      TQ_RETURN_IF_ERROR(Write(dict.entries[i].first));
      out_ += ": ";
      TQ_RETURN_IF_ERROR(Write(dict.entries[i].second));
    }
    out_ += '}';
    return Status::Ok();
  }

  Status WriteView(const ViewObject& view) {
    const DictObject& dict = view.dict.dict();
    const bool keys = view.what == ViewObject::What::kKeys;
    const bool pairs = view.what == ViewObject::What::kItems;
    out_ += pairs ? "dict_items([" : keys ? "dict_keys([" : "dict_values([";
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) out_ += ", ";
      if (pairs) out_ += '(';
      if (pairs || keys) TQ_RETURN_IF_ERROR(Write(dict.entries[i].first));
      if (pairs) out_ += ", ";
      if (pairs || !keys) TQ_RETURN_IF_ERROR(Write(dict.entries[i].second));
      if (pairs) out_ += ')';
    }
    out_ += "])";
    return Status::Ok();
  }

  Runtime& rt_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

Result<std::string> Repr(Runtime& rt, const Value& value) {
  ReprWriter writer(rt);
  TQ_RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

Result<std::string> Str(Runtime& rt, const Value& value) {
  if (value.IsString()) return std::string(value.text());
  if (value.IsUndefined() || value.IsMissing()) return std::string();
  return Repr(rt, value);
}

}  // namespace tq::jinja
