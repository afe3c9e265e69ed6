// /v1/messages.
#include <utility>

#include <fmt/format.h>

#include "chat/parse_messages.h"

namespace tq {
namespace {

using request::AddText;

constexpr std::string_view kBillingLine = "x-anthropic-billing-header:";
constexpr std::string_view kBlank = "\n\n";

Result<std::string> ReadSystem(const RequestNode& system) {
  if (system.IsNull()) return std::string();
  if (system.IsText()) return system.text();
  if (!system.IsList()) return system.Expected("a text or a list of text blocks");
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> blocks, system.List());
  std::string joined;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const RequestNode type = blocks[i]["type"];
    if (!type.IsText() || type.text() != "text") return type.Expected("\"text\"");
    TQ_ASSIGN_OR_RETURN(const std::string text, blocks[i]["text"].Text());
    if (text.empty() || (i == 0 && text.starts_with(kBillingLine))) continue;
    if (!joined.empty()) joined += kBlank;
    joined += text;
  }
  return joined;
}

Result<ImageRef> ReadImage(const RequestNode& source) {
  TQ_RETURN_IF_ERROR(source.CheckObject());
  const RequestNode type = source["type"];
  const std::string kind = type.IsText() ? type.text() : "";
  ImageRef image;
  if (kind == "base64") {
    TQ_ASSIGN_OR_RETURN(image.media_type, source["media_type"].Text());
    TQ_ASSIGN_OR_RETURN(image.data, source["data"].Text());
  } else if (kind == "url") {
    TQ_ASSIGN_OR_RETURN(std::string url, source["url"].Text());
    image = request::ImageOfUrl(std::move(url), "");
  } else if (kind == "file") {
    TQ_ASSIGN_OR_RETURN(image.file_id, source["file_id"].Text());
  } else {
    return type.Expected("\"base64\", \"url\" or \"file\"");
  }
  return image;
}

// Reads one message, which may become several: each tool_result is a message of its own.
class MessageReader {
 public:
  MessageReader(const RequestNode& node, ChatInput& input) : node_(node), input_(input) {}

  Status Read() {
    TQ_RETURN_IF_ERROR(node_.CheckObject());
    const RequestNode role = node_["role"];
    const std::string name = role.IsText() ? role.text() : "";
    if (name == "user") {
      message_.role = ChatRole::kUser;
    } else if (name == "assistant") {
      message_.role = ChatRole::kAssistant;
    } else if (name == "system") {
      message_.role = ChatRole::kSystem;
    } else {
      return role.Expected("\"user\", \"assistant\" or \"system\"");
    }
    const RequestNode content = node_["content"];
    if (content.IsText()) {
      AddText(message_, content.text());
    } else if (content.IsList()) {
      TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> blocks, content.List());
      for (const RequestNode& block : blocks) TQ_RETURN_IF_ERROR(ReadBlock(block));
    } else {
      return content.Expected("a text or a list of blocks");
    }
    for (ChatMessage& result : results_) input_.messages.push_back(std::move(result));
    // A message of results only has nothing else to say.
    if (results_.empty() || !message_.content.empty()) {
      input_.messages.push_back(std::move(message_));
    }
    return Status::Ok();
  }

 private:
  Status ReadBlock(const RequestNode& block) {
    if (block.IsText()) {
      AddText(message_, block.text());
      return Status::Ok();
    }
    TQ_RETURN_IF_ERROR(block.CheckObject());
    const RequestNode type = block["type"];
    const std::string kind = type.IsText() ? type.text() : "";
    const bool is_assistant = message_.role == ChatRole::kAssistant;
    const bool is_user = message_.role == ChatRole::kUser;
    if (kind == "text") {
      TQ_ASSIGN_OR_RETURN(std::string text, block["text"].Text());
      AddText(message_, std::move(text));
      return Status::Ok();
    }
    if (kind == "image" && !is_assistant) {
      TQ_ASSIGN_OR_RETURN(ImageRef image, ReadImage(block["source"]));
      message_.content.push_back({ContentPart::Kind::kImage, "", std::move(image)});
      return Status::Ok();
    }
    if (kind == "tool_result" && is_user) return ReadResult(block);
    if (kind == "tool_use" && is_assistant) return ReadCall(block);
    if (kind == "thinking" && is_assistant) return ReadThinking(block);
    if (kind == "redacted_thinking" && is_assistant) return Skip(block, kind);
    if (is_assistant && (kind == "server_tool_use" || kind.ends_with("_tool_result"))) {
      return Skip(block, kind);
    }
    if (is_assistant) return type.Expected("\"text\", \"tool_use\" or \"thinking\"");
    return type.Expected(is_user ? "\"text\", \"image\" or \"tool_result\"" : "\"text\"");
  }

  Status Skip(const RequestNode& block, std::string_view kind) {
    input_.notes.push_back(fmt::format("{}: left out a block of type {}", block.path(), kind));
    return Status::Ok();
  }

  Status ReadThinking(const RequestNode& block) {
    TQ_ASSIGN_OR_RETURN(const std::string text, block["thinking"].Text());
    TQ_ASSIGN_OR_RETURN(message_.reasoning_signature, block["signature"].OptionalText());
    message_.reasoning += text;
    return Status::Ok();
  }

  Status ReadCall(const RequestNode& block) {
    ToolCall call;
    TQ_ASSIGN_OR_RETURN(call.id, block["id"].Text());
    TQ_ASSIGN_OR_RETURN(call.name, block["name"].Text());
    TQ_ASSIGN_OR_RETURN(call.arguments, request::CallArguments(block["input"]));
    message_.tool_calls.push_back(std::move(call));
    return Status::Ok();
  }

  Status ReadResult(const RequestNode& block) {
    ChatMessage result;
    result.role = ChatRole::kTool;
    TQ_ASSIGN_OR_RETURN(result.tool_call_id, block["tool_use_id"].Text());
    result.is_error = block["is_error"].IsTrue();
    const RequestNode content = block["content"];
    if (content.IsText()) {
      AddText(result, content.text());
    } else {
      TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> parts, content.List());
      for (const RequestNode& part : parts) TQ_RETURN_IF_ERROR(ReadResultPart(part, result));
    }
    results_.push_back(std::move(result));
    return Status::Ok();
  }

  Status ReadResultPart(const RequestNode& part, ChatMessage& result) {
    const RequestNode type = part["type"];
    const std::string kind = type.IsText() ? type.text() : "";
    if (kind == "text") {
      TQ_ASSIGN_OR_RETURN(std::string text, part["text"].Text());
      AddText(result, std::move(text));
    } else if (kind == "image") {
      TQ_ASSIGN_OR_RETURN(ImageRef image, ReadImage(part["source"]));
      result.content.push_back({ContentPart::Kind::kImage, "", std::move(image)});
    } else if (kind == "tool_reference") {
      TQ_ASSIGN_OR_RETURN(const std::string name, part["tool_name"].Text());
      AddText(result, Introduce(name));
    } else if (kind == "search_result" || kind == "document") {
      return Skip(part, kind);
    } else {
      return type.Expected("\"text\", \"image\" or \"tool_reference\"");
    }
    return Status::Ok();
  }

  // What the model reads about a tool that comes into view here.
  std::string Introduce(const std::string& name) const {
    for (const ToolSpec& tool : input_.tools) {
      if (tool.name != name) continue;
      const OrderedJson shown = {{"type", "function"}, {"function", tool.function}};
      return shown.dump() + "\n";
    }
    return name + "\n";
  }

  const RequestNode& node_;
  ChatInput& input_;
  ChatMessage message_;
  std::vector<ChatMessage> results_;
};

Status ReadTool(const RequestNode& node, ChatInput& input) {
  TQ_RETURN_IF_ERROR(node.CheckObject());
  TQ_ASSIGN_OR_RETURN(const std::string type, node["type"].OptionalText());
  if (!type.empty() && type != "custom") {
    input.notes.push_back(fmt::format("{}: left out a tool of type {}", node.path(),
                                      node["type"].value().dump(-1, ' ', true)));
    return Status::Ok();
  }
  ToolSpec tool;
  TQ_ASSIGN_OR_RETURN(tool.name, node["name"].Text());
  if (tool.name.empty()) return node["name"].Expected("the name of a function");
  TQ_ASSIGN_OR_RETURN(const std::string description, node["description"].OptionalText());
  const RequestNode schema = node["input_schema"];
  if (!schema.IsNull()) TQ_RETURN_IF_ERROR(schema.CheckObject());
  OrderedJson parameters = schema.value();
  if (schema.IsNull()) {
    parameters = {{"type", "object"}, {"properties", OrderedJson::object()}};
  }
  tool.is_deferred = node["defer_loading"].IsTrue();
  tool.function = {{"name", tool.name}, {"description", description}};
  tool.function["parameters"] = std::move(parameters);
  input.tools.push_back(std::move(tool));
  return Status::Ok();
}

}  // namespace

Result<ChatInput> ParseAnthropicChat(const OrderedJson& body) {
  const RequestNode root(body, body.is_array() ? "messages" : "");
  if (!root.IsList() && !root.IsObject()) return root.Expected("an object");
  const RequestNode list = root.IsList() ? root : root["messages"];
  if (!list.IsList() || list.value().empty()) return list.Expected("a list of messages");
  ChatInput input;
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> tools, root["tools"].List());
  for (const RequestNode& tool : tools) TQ_RETURN_IF_ERROR(ReadTool(tool, input));
  TQ_ASSIGN_OR_RETURN(const std::string system, ReadSystem(root["system"]));
  if (!system.empty()) input.messages.push_back(MakeMessage(ChatRole::kSystem, system));
  TQ_ASSIGN_OR_RETURN(const std::vector<RequestNode> messages, list.List());
  for (const RequestNode& node : messages) {
    TQ_RETURN_IF_ERROR(MessageReader(node, input).Read());
  }
  return request::Finish(std::move(input));
}

}  // namespace tq
