#include "server/tool_choice.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "server/fields.h"

namespace tq::server {
namespace {

// A reference to a tool: {"type": T, "name"} or {"type": T, T: {"name"}}. The name as the model
// sees it.
Result<std::string> ReadToolName(const RequestNode& node, const ChatInput& input) {
  TQ_RETURN_IF_ERROR(node.CheckObject());
  TQ_ASSIGN_OR_RETURN(const std::string type, node["type"].OptionalText());
  const RequestNode inner = type.empty() ? node : node[type];
  const RequestNode named = inner.IsObject() ? inner["name"] : node["name"];
  TQ_ASSIGN_OR_RETURN(const std::string name, named.Text());
  TQ_ASSIGN_OR_RETURN(const std::string space, node["namespace"].OptionalText());
  const auto tool = std::find_if(input.tools.begin(), input.tools.end(), [&](const ToolSpec& spec) {
    return spec.name == name || (!spec.name_space.empty() && spec.name_space == space &&
                                 spec.name == space + "__" + name);
  });
  if (tool == input.tools.end()) return named.Expected("the name of a tool of this request");
  return tool->name;
}

Result<std::vector<std::string>> ReadToolNames(const RequestNode& list, const ChatInput& input) {
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> nodes, list.List());
  if (nodes.empty()) return list.Expected("a list of tools that is not empty");
  std::vector<std::string> names;
  for (const RequestNode& node : nodes) {
    TQ_ASSIGN_OR_RETURN(names.emplace_back(), ReadToolName(node, input));
  }
  return names;
}

Status ReadAllowedTools(const RequestNode& choice, ToolChoice& out, ChatInput& input) {
  const RequestNode inner = choice["allowed_tools"];
  const RequestNode& allowed = inner.IsObject() ? inner : choice;
  TQ_ASSIGN_OR_RETURN(const std::string mode, allowed["mode"].OptionalText());
  if (!mode.empty() && mode != "auto" && mode != "required") {
    return allowed["mode"].Expected("\"auto\" or \"required\"");
  }
  TQ_ASSIGN_OR_RETURN(out.names, ReadToolNames(allowed["tools"], input));
  out.forced = mode == "required";
  if (out.forced) return Status::Ok();
  std::erase_if(input.tools, [&](const ToolSpec& tool) {
    return std::find(out.names.begin(), out.names.end(), tool.name) == out.names.end();
  });
  return Status::Ok();
}

Status ReadChoice(const RequestNode& choice, ToolChoice& out, ChatInput& input) {
  if (choice.IsNull()) return Status::Ok();
  const RequestNode type = choice.IsObject() ? choice["type"] : choice;
  const std::string name = type.IsText() ? type.text() : "";
  if (name == "auto") return Status::Ok();
  if (name == "none") {
    input.tools.clear();
    return Status::Ok();
  }
  const bool is_any = name == "required" || name == "any";
  if (!is_any && !choice.IsObject()) {
    return choice.Expected("\"auto\", \"none\", \"required\" or an object that names a tool");
  }
  if (input.tools.empty()) {
    return InvalidArgument(
        fmt::format("{}: expected tools that can be called, found none", choice.path()));
  }
  if (name == "allowed_tools") return ReadAllowedTools(choice, out, input);
  out.forced = true;
  if (is_any) return Status::Ok();
  if (name != "function" && name != "tool" && name != "custom") {
    return type.Expected(
        "\"auto\", \"none\", \"required\", \"any\", \"function\", \"tool\", \"custom\" or "
        "\"allowed_tools\"");
  }
  TQ_ASSIGN_OR_RETURN(out.names.emplace_back(), ReadToolName(choice, input));
  return Status::Ok();
}

}  // namespace

Result<ToolChoice> ReadToolChoice(const RequestNode& body, ChatInput& input) {
  ToolChoice out;
  const RequestNode choice = body["tool_choice"];
  TQ_RETURN_IF_ERROR(ReadChoice(choice, out, input));
  TQ_ASSIGN_OR_RETURN(const auto parallel, OptionalBool(body["parallel_tool_calls"]));
  TQ_ASSIGN_OR_RETURN(const auto disabled, OptionalBool(choice["disable_parallel_tool_use"]));
  out.one_call = !parallel.value_or(true) || disabled.value_or(false);
  return out;
}

}  // namespace tq::server
