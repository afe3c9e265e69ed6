#include "chat/output/tool_grammar.h"

#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "chat/output/grammar_parts.h"
#include "chat/output/tagged_arguments.h"
#include "chat/output/tool_format.h"

namespace tq {
namespace {

using grammar::List;
using grammar::OneOf;
using grammar::Optional;
using grammar::Regex;
using grammar::Schema;
using grammar::Sequence;
using grammar::Space;
using grammar::Text;
using Shape = ToolFormat::Shape;

// The schema of the arguments. One that names none means that there are none, unless it says more.
OrderedJson Parameters(const ToolSpec& tool) {
  OrderedJson schema = {{"type", "object"}};
  const auto found = tool.function.find("parameters");
  if (found != tool.function.end() && found->is_object()) schema = *found;
  const auto properties = schema.find("properties");
  bool is_open = properties != schema.end() && !properties->empty();
  for (const char* key : {"additionalProperties", "patternProperties", "propertyNames", "$ref",
                          "anyOf", "oneOf", "allOf", "enum", "const"}) {
    is_open = is_open || schema.contains(key);
  }
  if (!is_open) schema["additionalProperties"] = false;
  return schema;
}

std::string Quoted(const std::string& text) { return OrderedJson(text).dump(); }

class Builder {
 public:
  Builder(const std::vector<ToolSpec>& tools, const ToolGrammarOptions& options)
      : tools_(tools), options_(options), format_(FormatOf(options.syntax)) {}

  // Null: this syntax has none.
  OrderedJson Calls() const {
    switch (options_.syntax) {
      case ToolSyntax::kHermes:
        return List(
            Sequence({Text("<tool_call>\n"), Objects("name", "arguments"), Text("\n</tool_call>")}),
            Space(), options_.several);
      case ToolSyntax::kLlama3:
        return List(Objects("name", "parameters"), Text("; "), options_.several);
      case ToolSyntax::kNemotron:
      case ToolSyntax::kGranite:
      case ToolSyntax::kPhi:
        return ObjectList("name", "arguments", "");
      case ToolSyntax::kCommand:
        return ObjectList("tool_name", "parameters", "\"tool_call_id\": ");
      case ToolSyntax::kMistral:
        return Mistral();
      case ToolSyntax::kDeepSeek:
        return InRegion(EachTool([this](const ToolSpec& tool) { return DeepSeek(tool); }));
      case ToolSyntax::kKimi:
        return InRegion(EachTool([this](const ToolSpec& tool) { return Kimi(tool); }));
      case ToolSyntax::kHarmony:
        return Sequence({Optional(Text("<|start|>assistant")),
                         EachTool([](const ToolSpec& tool) { return Harmony(tool); })});
      case ToolSyntax::kPythonic:
      case ToolSyntax::kLlama4:
        return Python();
      default:
        return format_.shape == Shape::kNamed ? Tagged() : OrderedJson();
    }
  }

 private:
  template <typename CallOf>
  OrderedJson EachTool(CallOf call_of) const {
    std::vector<OrderedJson> calls;
    for (const ToolSpec& tool : tools_) calls.push_back(call_of(tool));
    return OneOf(std::move(calls));
  }

  // {"name": "NAME", "arguments": {...}}
  OrderedJson Objects(std::string_view name, std::string_view arguments,
                      std::string_view id = {}) const {
    return EachTool([&](const ToolSpec& tool) {
      const std::string rest =
          fmt::format("\"{}\": {}, \"{}\": ", name, Quoted(tool.name), arguments);
      if (id.empty()) return Sequence({Text("{" + rest), Schema(Parameters(tool)), Text("}")});
      return Sequence({Text(fmt::format("{{{}\"", id)), Regex("[0-9]{1,3}"), Text("\", " + rest),
                       Schema(Parameters(tool)), Text("}")});
    });
  }

  OrderedJson ObjectList(std::string_view name, std::string_view arguments,
                         std::string_view id) const {
    return Sequence(
        {Text(std::string(format_.open[0]) + "["), Space(),
         List(Objects(name, arguments, id), Sequence({Text(","), Space()}), options_.several),
         Space(), Text("]" + std::string(format_.close))});
  }

  OrderedJson Mistral() const {
    const std::string open(format_.open[0]);
    const std::string name_close(format_.name_close);
    if (options_.has_token && !options_.has_token(name_close)) {
      return Sequence({Text(open), Space(), ObjectListBody()});
    }
    return List(EachTool([&](const ToolSpec& tool) {
                  return Sequence({Text(open + tool.name + name_close), Schema(Parameters(tool))});
                }),
                Text(""), options_.several);
  }
  OrderedJson ObjectListBody() const {
    return Sequence(
        {Text("["), List(Objects("name", "arguments"), Text(", "), options_.several), Text("]")});
  }

  // One pair of marks around all calls.
  OrderedJson InRegion(const OrderedJson& call) const {
    return Sequence({Text(format_.open[0]), Space(), List(call, Space(), options_.several), Space(),
                     Text(format_.close)});
  }

  // Two forms: since V3.1, and before it.
  OrderedJson DeepSeek(const ToolSpec& tool) const {
    const std::string open(format_.call_open);
    const std::string separator(format_.name_close);
    const std::string close(format_.call_close);
    return OneOf(
        {Sequence({Text(open + tool.name + separator), Schema(Parameters(tool)), Text(close)}),
         Sequence({Text(open + "function" + separator + tool.name + "\n```json\n"),
                   Schema(Parameters(tool)), Text("\n```" + close)})});
  }

  OrderedJson Kimi(const ToolSpec& tool) const {
    return Sequence({Text(std::string(format_.call_open) + "functions." + tool.name + ":"),
                     Regex("[0-9]{1,3}"), Text(format_.name_close), Schema(Parameters(tool)),
                     Text(format_.call_close)});
  }

  static OrderedJson Harmony(const ToolSpec& tool) {
    return Sequence(
        {Text("<|channel|>commentary to=functions." + tool.name + " <|constrain|>json<|message|>"),
         Schema(Parameters(tool))});
  }

  OrderedJson Python() const {
    const OrderedJson call = EachTool([](const ToolSpec& tool) {
      return Sequence({Text(tool.name + "("), PythonArguments(Parameters(tool)), Text(")")});
    });
    // The mark is optional where an answer may begin with the list itself.
    const bool is_bare = format_.bare != 0;
    return Sequence({Text(is_bare ? "" : format_.open[0]), Text("["),
                     List(call, Text(", "), options_.several), Text("]"), Text(format_.close)});
  }

  // Names and arguments in tags.
  OrderedJson Tagged() const {
    const ToolTypes types(tools_);
    const OrderedJson call = EachTool([&](const ToolSpec& tool) {
      const bool in_open = format_.open_is_call;
      std::string begin(in_open ? format_.open[0] : format_.call_open);
      begin += tool.name;
      begin += format_.name_close;
      OrderedJson attributes = Text("");
      if (format_.syntax == ToolSyntax::kKimiXml) {
        attributes = Sequence({Text(" index=\""), Regex("[0-9]{1,3}"), Text("\"")});
      }
      return Sequence({Text(begin), std::move(attributes), Text(format_.attributes_close), Space(),
                       TaggedArguments(format_, types, tool.name, Parameters(tool)),
                       Text(format_.call_close)});
    });
    if (format_.open_is_call) return List(call, Space(), options_.several);
    // A name right behind the mark, or one call in each pair of marks as the models were taught.
    const bool one_each = format_.call_open.empty() || format_.syntax == ToolSyntax::kQwenXml ||
                          format_.syntax == ToolSyntax::kSeed;
    if (!one_each) return InRegion(call);
    const OrderedJson space = format_.call_open.empty() ? Text("") : Space();
    return List(Sequence({Text(format_.open[0]), space, call, Space(), Text(format_.close)}),
                Space(), options_.several);
  }

  const std::vector<ToolSpec>& tools_;
  const ToolGrammarOptions& options_;
  const ToolFormat& format_;
};

}  // namespace

Result<std::string> MakeToolGrammar(const std::vector<ToolSpec>& tools,
                                    const ToolGrammarOptions& options) {
  OrderedJson calls = Builder(tools, options).Calls();
  if (calls.is_null()) {
    const std::string_view name = ToolSyntaxName(options.syntax);
    return InvalidArgument(
        options.syntax == ToolSyntax::kNone
            ? std::string("calls cannot be forced: the chat template has no syntax for them that "
                          "is known here")
            : fmt::format("calls cannot be forced in this model's syntax ({})", name));
  }
  if (!options.otherwise.empty()) {
    TQ_ASSIGN_OR_RETURN(OrderedJson otherwise, ParseOrderedJson(options.otherwise, "otherwise"));
    calls = OneOf({std::move(calls), std::move(otherwise)});
  }
  if (options.leading_space) calls = Sequence({Space(), std::move(calls)});
  const OrderedJson tag = {{"type", "structural_tag"}, {"format", std::move(calls)}};
  return tag.dump();
}

}  // namespace tq
