// Servers with a given answer and template, and requests to all three APIs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/replay.h"
#include "server/summary_for_test.h"

namespace tq::server {

using Lines = std::vector<std::string>;

// A template of a family that writes its calls with this text in it.
inline std::string TemplateWith(const std::string& calls, const std::string& behind = "") {
  return "{% if tools %}{% for t in tools %}{{ t.function.name }}: {{ t.function.description }} "
         "{{ t.function.parameters | tojson }} {% endfor %}{% raw %}" +
         calls +
         "{% endraw %}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
         "{% for c in m.tool_calls or [] %}{{ c.function.name }} "
         "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
         "{% if add_generation_prompt %}<assistant>" +
         behind + "{% endif %}";
}

inline const std::string kHermes = TemplateWith("<tool_call>arguments</tool_call><think></think>");
inline const std::string kXml = TemplateWith("<tool_call>\n<function=f>\n<think></think>");
inline const std::string kMistral = TemplateWith("[TOOL_CALLS]");
inline const std::string kHarmony =
    TemplateWith("<|channel|>commentary to=functions.f <|channel|>analysis<|message|>");
inline const std::string kOpened = TemplateWith("<tool_call>arguments</tool_call>", "<think>");

inline TestServerOptions Says(const std::string& script,
                              const std::string& chat_template = kHermes) {
  TestServerOptions options;
  options.load_text = [chat_template](TextAssets& text) {
    auto tokenizer = Tokenizer::Load(tq::test::ByteTokenizerJson(), "");
    text.tokenizer = std::move(tokenizer).value();
    ChatDocuments documents;
    documents.chat_template_jinja = chat_template;
    auto chat = ChatPrompt::Load(documents);
    EXPECT_TRUE(chat.ok()) << chat.status().message();
    text.chat = std::move(chat).value();
    text.end_ids = {tq::test::ScriptModel::kEnd};
  };
  options.make_model = [script](const TextAssets& text) {
    auto model = MakeReplayModel({{.say = script}}, text, 8192);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  };
  return options;
}

inline constexpr const char* kFunctions[][2] = {
    {"weather", R"({"type": "object", "properties": {"city": {"type": "string"}}})"},
    {"shell", R"({"type": "object", "properties": {"command": {"type": "string"}}})"},
    {"find", R"({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"},
                 "limit": {"type": "integer"}, "offset": {"type": ["integer", "null"]}}})"},
    {"ping", ""}};

// The functions in the form of an API.
inline Json Tools(const std::string& path) {
  Json tools = Json::array();
  for (const auto& [name, schema] : kFunctions) {
    Json function = {{"name", name}};
    const bool anthropic = path == "/v1/messages";
    if (*schema != '\0') {
      function[anthropic ? "input_schema" : "parameters"] = *ParseJson(schema, "schema");
    } else if (anthropic) {
      function["input_schema"] = {{"type", "object"}};
    }
    if (path == "/v1/chat/completions") function = {{"type", "function"}, {"function", function}};
    if (path == "/v1/responses") function["type"] = "function";
    tools.push_back(function);
  }
  return tools;
}

inline constexpr const char* kPaths[] = {"/v1/chat/completions", "/v1/messages", "/v1/responses"};

inline Json Body(const std::string& path, bool tools, bool stream, int max_tokens = 400) {
  Json body = {{"stream", stream}};
  body[path == "/v1/responses" ? "input" : "messages"] =
      Json::array({Json{{"role", "user"}, {"content", "Hi"}}});
  body[path == "/v1/responses" ? "max_output_tokens" : "max_tokens"] = max_tokens;
  if (path == "/v1/messages") body["thinking"] = {{"type", "adaptive"}};
  if (tools) body["tools"] = Tools(path);
  return body;
}

// Why an answer ended, in the words of an API.
inline std::string EndOf(const std::string& path, const std::string& finish) {
  static const std::map<std::string, std::pair<std::string, std::string>> words = {
      {"stop", {"end_turn", "completed"}},
      {"length", {"max_tokens", "incomplete"}},
      {"tool_calls", {"tool_use", "completed"}}};
  if (path == "/v1/chat/completions") return "end " + finish;
  const auto& [messages, responses] = words.at(finish);
  return "end " + (path == "/v1/messages" ? messages : responses);
}

}  // namespace tq::server
