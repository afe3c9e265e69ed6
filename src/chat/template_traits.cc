#include "chat/template_traits.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace tq {
namespace {

// Words that no template has.
constexpr const char* kFirst = "qvfirstq";
constexpr const char* kSecond = "qvsecondq";
constexpr const char* kThird = "qvthirdq";
constexpr const char* kFunction = "qvfunctionq";
constexpr const char* kCallId = "abcdef123";

OrderedJson Message(const char* role, OrderedJson content) {
  return {{"role", role}, {"content", std::move(content)}};
}

OrderedJson Arguments() { return {{"qvkeyq", kThird}}; }

OrderedJson Call(OrderedJson arguments, const char* id = kCallId) {
  OrderedJson function = {{"name", kFunction}};
  function["arguments"] = std::move(arguments);
  return {{"id", id}, {"type", "function"}, {"function", std::move(function)}};
}

OrderedJson Caller(OrderedJson content, OrderedJson call) {
  OrderedJson message = Message("assistant", std::move(content));
  message["tool_calls"] = OrderedJson::array({std::move(call)});
  return message;
}

OrderedJson ToolResult(OrderedJson content, const char* id = kCallId) {
  OrderedJson message = Message("tool", std::move(content));
  message["tool_call_id"] = id;
  return message;
}

OrderedJson WithImage(const char* text) {
  return OrderedJson::array({{{"type", "image"}}, {{"type", "text"}, {"text", text}}});
}

class Trial {
 public:
  Trial(const ChatTemplate& chat_template, const OrderedJson& variables)
      : template_(chat_template), variables_(variables) {
    variables_["add_generation_prompt"] = true;
    limits_.max_output_bytes = size_t{1} << 20;
    limits_.max_steps = 100'000;
    OrderedJson function = {{"name", kFunction}, {"description", "d"}};
    function["parameters"] = {{"type", "object"},
                              {"properties", {{"qvkeyq", {{"type", "string"}}}}}};
    tools_ = OrderedJson::array({{{"type", "function"}, {"function", std::move(function)}}});
  }

  std::optional<std::string> Render(OrderedJson messages, bool with_tools = false) {
    variables_["messages"] = std::move(messages);
    variables_["tools"] = with_tools ? tools_ : OrderedJson();
    Result<std::string> text = template_.Render(variables_, limits_);
    if (!text.ok()) return std::nullopt;
    return std::move(text).value();
  }

  // Whether it renders and shows all of the words, and no Python value of a list of parts.
  bool Shows(OrderedJson messages, std::initializer_list<const char*> words,
             bool with_tools = false) {
    const std::optional<std::string> text = Render(std::move(messages), with_tools);
    if (!text || text->find("'type'") != std::string::npos) return false;
    for (const char* word : words) {
      if (text->find(word) == std::string::npos) return false;
    }
    return true;
  }

 private:
  const ChatTemplate& template_;
  OrderedJson variables_;
  OrderedJson tools_;
  TemplateLimits limits_;
};

OrderedJson List(std::initializer_list<OrderedJson> messages) {
  OrderedJson list = OrderedJson::array();
  for (const OrderedJson& message : messages) list.push_back(message);
  return list;
}

void TryRoles(Trial& trial, TemplateTraits& traits) {
  const OrderedJson first = Message("user", kFirst);
  const OrderedJson system = Message("system", kSecond);
  const OrderedJson answer = Message("assistant", kThird);
  // A template that cannot even do this says nothing about itself.
  if (!trial.Shows(List({first}), {kFirst})) return;
  traits.takes_system = trial.Shows(List({system, first}), {kFirst, kSecond});
  traits.takes_system_run =
      traits.takes_system &&
      trial.Shows(List({system, Message("system", kThird), first}), {kFirst, kSecond, kThird});
  traits.takes_late_system =
      trial.Shows(List({first, answer, system, first}), {kFirst, kSecond, kThird}) &&
      trial.Shows(List({first, system}), {kFirst, kSecond});
  traits.takes_user_run = trial.Shows(List({first, Message("user", kSecond)}), {kFirst, kSecond});
  traits.takes_assistant_run = trial.Shows(
      List({first, Message("assistant", kSecond), answer, first}), {kFirst, kSecond, kThird});
  traits.takes_images = trial.Shows(List({Message("user", WithImage(kFirst))}), {kFirst});
}

void TryCalls(Trial& trial, TemplateTraits& traits) {
  const OrderedJson ask = Message("user", kFirst);
  const OrderedJson result = ToolResult(kSecond);
  const auto shows = [&](const OrderedJson& caller, const OrderedJson& answer) {
    return trial.Shows(List({ask, caller, answer}), {kFunction, kSecond, kThird}, true);
  };
  const std::string text_arguments = Arguments().dump();
  traits.takes_tools = trial.Shows(List({ask}), {kFirst, kFunction}, true);
  // "Right" content of a call without text: "" unless only none works.
  OrderedJson silent = "";
  traits.takes_object_arguments = shows(Caller(silent, Call(Arguments())), result);
  traits.takes_text_arguments = shows(Caller(silent, Call(text_arguments)), result);
  if (!traits.takes_object_arguments && !traits.takes_text_arguments) {
    silent = nullptr;
    traits.takes_object_arguments = shows(Caller(silent, Call(Arguments())), result);
    traits.takes_text_arguments = shows(Caller(silent, Call(text_arguments)), result);
    traits.wants_null_content = traits.takes_object_arguments || traits.takes_text_arguments;
  }
  traits.takes_calls = traits.takes_object_arguments || traits.takes_text_arguments;
  if (!traits.takes_calls) {
    traits.takes_object_arguments = traits.takes_text_arguments = true;
    return;
  }
  const OrderedJson arguments =
      traits.takes_object_arguments ? Arguments() : OrderedJson(text_arguments);
  const OrderedJson caller = Caller(silent, Call(arguments));
  traits.takes_user_after_tool = trial.Shows(
      List({ask, caller, result, Message("user", "qvlastq")}), {kSecond, "qvlastq"}, true);
  traits.takes_tool_images = shows(caller, ToolResult(WithImage(kSecond)));
  constexpr const char* kLongId = "call_0123456789abcdef";
  traits.takes_long_call_ids =
      shows(Caller(silent, Call(arguments, kLongId)), ToolResult(kSecond, kLongId));
  if (!traits.reasoning_key.empty()) {
    OrderedJson both = Caller("qvsaidq", Call(arguments));
    both[traits.reasoning_key] = "qvthoughtq";
    traits.takes_thought_text_call = trial.Render(List({ask, both, result}), true).has_value();
  }
  OrderedJson named = result;
  named["name"] = "qvnameq";
  std::optional<std::string> with_name = trial.Render(List({ask, caller, named}), true);
  if (!with_name || with_name->find("qvnameq") == std::string::npos) return;
  for (size_t at; (at = with_name->find("qvnameq")) != std::string::npos;) with_name->erase(at, 7);
  const std::optional<std::string> without = trial.Render(List({ask, caller, result}), true);
  traits.wants_tool_name = !without || *without == *with_name;
}

}  // namespace

TemplateTraits FindTemplateTraits(const ChatTemplate& chat_template, const OrderedJson& variables) {
  TemplateTraits traits;
  traits.takes_developer = chat_template.MentionsKey("developer");
  for (const char* key : {"reasoning_content", "reasoning", "thinking"}) {
    if (!chat_template.MentionsKey(key)) continue;
    traits.reasoning_key = key;
    break;
  }
  traits.knows_thoughts = !traits.reasoning_key.empty() || chat_template.MentionsText("think>");
  Trial trial(chat_template, variables);
  TryRoles(trial, traits);
  TryCalls(trial, traits);
  return traits;
}

}  // namespace tq
