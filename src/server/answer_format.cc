#include "server/answer_format.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tq::server {
namespace {

using Kind = GrammarSpec::Kind;

Result<GrammarSpec> SchemaOf(const RequestNode& schema) {
  if (!schema.IsObject() && !(schema.value().is_boolean())) {
    return schema.Expected("a JSON Schema");
  }
  return GrammarSpec{Kind::kJsonSchema, schema.value().dump(), SchemaMode::kRefuse};
}

// {"type": "text" | "json_object" | "json_schema", ...}; the schema itself is in "schema" or, in
// chat completions, in "json_schema".
Result<std::optional<GrammarSpec>> TypedFormat(const RequestNode& format) {
  TQ_RETURN_IF_ERROR(format.CheckObject());
  const RequestNode type = format["type"];
  const std::string name = type.IsText() ? type.text() : "";
  if (name == "text") return std::optional<GrammarSpec>();
  if (name == "json_object") return std::optional<GrammarSpec>(GrammarSpec{Kind::kJsonObject, ""});
  if (name != "json_schema") {
    return type.Expected("\"text\", \"json_object\" or \"json_schema\"");
  }
  const RequestNode wrapped = format["json_schema"];
  TQ_ASSIGN_OR_RETURN(GrammarSpec spec,
                      SchemaOf(wrapped.IsNull() ? format["schema"] : wrapped["schema"]));
  return std::optional<GrammarSpec>(std::move(spec));
}

// One of several texts.
Result<GrammarSpec> ChoiceOf(const RequestNode& choices) {
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> list, choices.List());
  std::string grammar;
  for (const RequestNode& choice : list) {
    TQ_ASSIGN_OR_RETURN(const std::string text, choice.Text());
    grammar += grammar.empty() ? "root ::= " : " | ";
    grammar += OrderedJson(text).dump();
  }
  if (grammar.empty()) return choices.Expected("a list of texts that is not empty");
  return GrammarSpec{Kind::kEbnf, std::move(grammar)};
}

Result<GrammarSpec> TextOf(Kind kind, const RequestNode& node) {
  TQ_ASSIGN_OR_RETURN(std::string text, node.Text());
  return GrammarSpec{kind, std::move(text)};
}

Result<GrammarSpec> PlainFormat(std::string_view name, const RequestNode& node) {
  if (name.ends_with("json") || name == "json_schema") {
    if (!node.IsText()) return SchemaOf(node);
    return GrammarSpec{Kind::kJsonSchema, node.text()};
  }
  if (name.ends_with("regex")) return TextOf(Kind::kRegex, node);
  if (name.ends_with("choice")) return ChoiceOf(node);
  return TextOf(Kind::kEbnf, node);
}

}  // namespace

Result<std::optional<GrammarSpec>> ReadAnswerFormat(const RequestNode& body, std::string* field) {
  std::optional<GrammarSpec> out;
  std::string found;
  const auto take = [&](const RequestNode& node, std::optional<GrammarSpec> spec) {
    if (!found.empty()) {
      return InvalidArgument(
          fmt::format("{}: expected one form of the answer, found {} too", node.path(), found));
    }
    found = node.path();
    out = std::move(spec);
    return Status::Ok();
  };
  const std::array typed = {body["response_format"], body["text"]["format"],
                            body["output_config"]["format"], body["output_format"]};
  for (const RequestNode& node : typed) {
    if (node.IsNull()) continue;
    TQ_ASSIGN_OR_RETURN(std::optional<GrammarSpec> spec, TypedFormat(node));
    TQ_RETURN_IF_ERROR(take(node, std::move(spec)));
  }
  const RequestNode outputs = body["structured_outputs"];
  if (!outputs.IsNull()) TQ_RETURN_IF_ERROR(outputs.CheckObject());
  for (const char* name : {"json", "regex", "choice", "grammar"}) {
    for (const RequestNode& node : {outputs[name], body[fmt::format("guided_{}", name)]}) {
      if (node.IsNull()) continue;
      TQ_ASSIGN_OR_RETURN(GrammarSpec spec, PlainFormat(name, node));
      TQ_RETURN_IF_ERROR(take(node, std::move(spec)));
    }
  }
  for (const char* name : {"grammar", "json_schema"}) {
    const RequestNode node = body[name];
    if (node.IsNull()) continue;
    TQ_ASSIGN_OR_RETURN(GrammarSpec spec, PlainFormat(name, node));
    TQ_RETURN_IF_ERROR(take(node, std::move(spec)));
  }
  if (field != nullptr) *field = std::move(found);
  return out;
}

}  // namespace tq::server
