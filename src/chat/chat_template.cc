#include "chat/chat_template.h"

#include <algorithm>
#include <new>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/template/interpreter.h"
#include "chat/template/parser.h"
#include "chat/template/used_names.h"

namespace tq {

struct ChatTemplate::Impl {
  jinja::TemplateTree tree;
  jinja::UsedNames names;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::Parse(std::string_view source) {
  auto impl = std::make_unique<Impl>();
  TQ_ASSIGN_OR_RETURN(impl->tree, jinja::ParseTemplate(source));
  impl->names = jinja::FindUsedNames(impl->tree);
  return ChatTemplate(std::move(impl));
}

bool ChatTemplate::ReadsVariable(std::string_view name) const {
  return impl_->names.variables.count(name) > 0;
}

bool ChatTemplate::MentionsKey(std::string_view key) const {
  return impl_->names.keys.count(key) > 0;
}

bool ChatTemplate::MentionsText(std::string_view text) const {
  const auto& keys = impl_->names.keys;
  return std::any_of(keys.begin(), keys.end(), [text](const std::string& key) {
    return key.find(text) != std::string::npos;
  });
}

Result<std::string> ChatTemplate::Render(const OrderedJson& variables,
                                         const TemplateLimits& limits) const {
  if (!variables.is_object()) {
    return InvalidArgument("chat template: expected a JSON object of variables");
  }
  try {
    return jinja::Interpreter(impl_->tree, variables, limits).Run();
  } catch (const std::bad_alloc&) {
    return OutOfMemory("chat template: not enough memory to render it");
  }
}

}  // namespace tq
