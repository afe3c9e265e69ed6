// /v1/responses.
#include <utility>

#include <fmt/format.h>

#include "chat/parse_messages.h"

namespace tq {
namespace {

using request::AddText;

// How a function in a name space looks to the model, and in calls of it.
std::string QualifiedName(std::string_view name_space, std::string_view name) {
  return name_space.empty() ? std::string(name) : fmt::format("{}__{}", name_space, name);
}

Status ReadPart(const RequestNode& part, ChatMessage& message) {
  TQ_RETURN_IF_ERROR(part.CheckObject());
  const RequestNode type = part["type"];
  const std::string kind = type.IsText() ? type.text() : "";
  if (kind == "input_text" || kind == "output_text" || kind == "text" || kind == "refusal") {
    TQ_ASSIGN_OR_RETURN(std::string text, part[kind == "refusal" ? "refusal" : "text"].Text());
    AddText(message, std::move(text));
    return Status::Ok();
  }
  if (kind == "input_image") {
    TQ_ASSIGN_OR_RETURN(std::string detail, part["detail"].OptionalText());
    ImageRef image;
    if (part["image_url"].IsNull() && part["file_id"].IsText()) {
      image.file_id = part["file_id"].text();
      image.detail = std::move(detail);
    } else {
      TQ_ASSIGN_OR_RETURN(std::string url, part["image_url"].Text());
      image = request::ImageOfUrl(std::move(url), std::move(detail));
    }
    message.content.push_back({ContentPart::Kind::kImage, "", std::move(image)});
    return Status::Ok();
  }
  return type.Expected("\"input_text\", \"output_text\" or \"input_image\"");
}

Status ReadContent(const RequestNode& content, ChatMessage& message) {
  if (content.IsText()) {
    AddText(message, content.text());
    return Status::Ok();
  }
  if (!content.IsList()) return content.Expected("a text or a list of parts");
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> parts, content.List());
  for (const RequestNode& part : parts) TQ_RETURN_IF_ERROR(ReadPart(part, message));
  return Status::Ok();
}

// Steps of tools that run elsewhere: nothing of them is for the model.
bool IsHostedStep(std::string_view type) {
  return type.ends_with("_call") || type.ends_with("_call_output") || type.starts_with("mcp_") ||
         type == "item_reference" || type == "compaction" || type == "tool_search_output";
}

class ItemReader {
 public:
  explicit ItemReader(ChatInput& input) : input_(input) {}

  Status Read(const RequestNode& item) {
    TQ_RETURN_IF_ERROR(item.CheckObject());
    const RequestNode type = item["type"];
    TQ_ASSIGN_OR_RETURN(const std::string kind, type.OptionalText());
    if (kind == "message" || (kind.empty() && !item["role"].IsNull())) return ReadMessage(item);
    if (kind == "function_call" || kind == "custom_tool_call") return ReadCall(item, kind);
    if (kind == "function_call_output" || kind == "custom_tool_call_output") {
      return ReadOutput(item);
    }
    if (kind == "reasoning") return ReadReasoning(item);
    if (IsHostedStep(kind)) {
      input_.notes.push_back(fmt::format("{}: left out an item of type {}", item.path(),
                                         type.value().dump(-1, ' ', true)));
      return Status::Ok();
    }
    return type.Expected(
        "\"message\", \"function_call\", \"function_call_output\" or \"reasoning\"");
  }

  // An answer that is only thoughts says nothing that a prompt could show.
  void Finish() {
    if (turn_open_ && only_reasoning_) input_.messages.pop_back();
    turn_open_ = false;
  }

 private:
  // The assistant message that the next item belongs to.
  ChatMessage& Turn() {
    if (!turn_open_) {
      input_.messages.push_back(MakeMessage(ChatRole::kAssistant, ""));
      turn_open_ = true;
      only_reasoning_ = true;
    }
    return input_.messages.back();
  }

  Status ReadMessage(const RequestNode& item) {
    const RequestNode role = item["role"];
    const std::string name = role.IsText() ? role.text() : "";
    if (name == "assistant") {
      // A second text is a second answer, but a text behind calls belongs to them.
      if (turn_open_ && !only_reasoning_ && Turn().tool_calls.empty()) Finish();
      ChatMessage& turn = Turn();
      only_reasoning_ = false;
      return ReadContent(item["content"], turn);
    }
    Finish();
    ChatMessage message;
    if (name == "user") {
      message.role = ChatRole::kUser;
    } else if (name == "system") {
      message.role = ChatRole::kSystem;
    } else if (name == "developer") {
      message.role = ChatRole::kDeveloper;
    } else {
      return role.Expected("\"user\", \"assistant\", \"system\" or \"developer\"");
    }
    TQ_RETURN_IF_ERROR(ReadContent(item["content"], message));
    input_.messages.push_back(std::move(message));
    return Status::Ok();
  }

  Status ReadCall(const RequestNode& item, std::string_view kind) {
    ToolCall call;
    TQ_ASSIGN_OR_RETURN(call.id, item["call_id"].Text());
    TQ_ASSIGN_OR_RETURN(const std::string name, item["name"].Text());
    TQ_ASSIGN_OR_RETURN(const std::string name_space, item["namespace"].OptionalText());
    call.name = QualifiedName(name_space, name);
    if (kind == "custom_tool_call") {
      TQ_ASSIGN_OR_RETURN(const std::string text, item["input"].OptionalText());
      call.arguments = CustomArguments(text);
    } else {
      TQ_ASSIGN_OR_RETURN(call.arguments, request::CallArguments(item["arguments"]));
    }
    Turn().tool_calls.push_back(std::move(call));
    only_reasoning_ = false;
    return Status::Ok();
  }

  Status ReadOutput(const RequestNode& item) {
    Finish();
    ChatMessage result;
    result.role = ChatRole::kTool;
    TQ_ASSIGN_OR_RETURN(result.tool_call_id, item["call_id"].Text());
    TQ_RETURN_IF_ERROR(ReadContent(item["output"], result));
    input_.messages.push_back(std::move(result));
    return Status::Ok();
  }

  // Replayed thoughts, of which some clients send only an id: those add nothing.
  Status ReadReasoning(const RequestNode& item) {
    std::string text;
    for (const char* key : {"content", "summary"}) {
      if (!text.empty() || !item[key].IsList()) continue;
      TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> parts, item[key].List());
      for (const RequestNode& part : parts) {
        TQ_ASSIGN_OR_RETURN(const std::string piece, part["text"].OptionalText());
        if (!text.empty() && !piece.empty()) text += "\n";
        text += piece;
      }
    }
    if (text.empty()) return Status::Ok();
    if (turn_open_ && !only_reasoning_) Finish();
    std::string& reasoning = Turn().reasoning;
    if (!reasoning.empty()) reasoning += "\n";
    reasoning += text;
    return Status::Ok();
  }

  ChatInput& input_;
  bool turn_open_ = false;       // the last message is an assistant's that may grow
  bool only_reasoning_ = false;  // it has neither text nor calls yet
};

Status ReadTools(const RequestNode& list, const std::string& name_space, ChatInput& input,
                 int depth) {
  constexpr int kMaxDepth = 8;
  if (depth > kMaxDepth) return list.Expected(fmt::format("at most {} name spaces", kMaxDepth));
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> nodes, list.List());
  for (const RequestNode& node : nodes) {
    TQ_RETURN_IF_ERROR(node.CheckObject());
    TQ_ASSIGN_OR_RETURN(const std::string type, node["type"].Text());
    ToolSpec tool;
    tool.name_space = name_space;
    if (type == "namespace") {
      TQ_ASSIGN_OR_RETURN(const std::string inner, node["name"].Text());
      TQ_RETURN_IF_ERROR(
          ReadTools(node["tools"], QualifiedName(name_space, inner), input, depth + 1));
      continue;
    }
    if (type == "function") {
      TQ_ASSIGN_OR_RETURN(const OrderedJson given, request::CompleteFunction(node));
      tool.name = QualifiedName(name_space, given["name"].get<std::string>());
      tool.function = {{"name", tool.name}};
      tool.function["description"] = given["description"];
      tool.function["parameters"] = given["parameters"];
    } else if (type == "custom") {
      TQ_ASSIGN_OR_RETURN(const std::string name, node["name"].Text());
      TQ_ASSIGN_OR_RETURN(const std::string description, node["description"].OptionalText());
      tool.is_custom = true;
      tool.name = QualifiedName(name_space, name);
      tool.function = request::CustomFunction(tool.name, description, node["format"].value());
    } else {
      input.notes.push_back(fmt::format("{}: left out a tool of type {}", node.path(),
                                        node["type"].value().dump(-1, ' ', true)));
      continue;
    }
    input.tools.push_back(std::move(tool));
  }
  return Status::Ok();
}

}  // namespace

Result<ChatInput> ParseResponsesChat(const OrderedJson& body, const OrderedJson& earlier) {
  const RequestNode root(body, "");
  TQ_RETURN_IF_ERROR(root.CheckObject());
  ChatInput input;
  TQ_RETURN_IF_ERROR(ReadTools(root["tools"], "", input, 0));
  TQ_ASSIGN_OR_RETURN(const std::string instructions, root["instructions"].OptionalText());
  if (!instructions.empty()) {
    input.messages.push_back(MakeMessage(ChatRole::kSystem, instructions));
  }
  ItemReader reader(input);
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> before,
                      RequestNode(earlier, "previous_response").List());
  for (const RequestNode& item : before) TQ_RETURN_IF_ERROR(reader.Read(item));
  const RequestNode items = root["input"];
  if (items.IsText()) {
    reader.Finish();
    input.messages.push_back(MakeMessage(ChatRole::kUser, items.text()));
  } else if (items.IsList()) {
    TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> nodes, items.List());
    for (const RequestNode& item : nodes) TQ_RETURN_IF_ERROR(reader.Read(item));
  } else {
    return items.Expected("a text or a list of items");
  }
  reader.Finish();
  if (input.messages.empty()) return items.Expected("at least one message");
  return request::Finish(std::move(input));
}

}  // namespace tq
