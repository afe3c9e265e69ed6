#include "chat/chat_template.h"

#include <new>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/template/interpreter.h"
#include "chat/template/parser.h"

namespace tq {

struct ChatTemplate::Impl {
  jinja::TemplateTree tree;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::Parse(std::string_view source) {
  auto impl = std::make_unique<Impl>();
  TQ_ASSIGN_OR_RETURN(impl->tree, jinja::ParseTemplate(source));
  return ChatTemplate(std::move(impl));
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
