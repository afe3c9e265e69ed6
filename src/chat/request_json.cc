#include "chat/request_json.h"

#include <fmt/format.h>

namespace tq {
namespace {

const OrderedJson& NullJson() {
  static const OrderedJson kNull;
  return kNull;
}

// A short word for an error: one line, and never much of a long text.
std::string Describe(const OrderedJson& value) {
  constexpr size_t kMaxBytes = 40;
  if (value.is_null()) return "nothing";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_object()) return "an object";
  std::string text =
      value.dump(-1, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace);
  if (text.size() > kMaxBytes)
    text = text.substr(0, kMaxBytes) + (value.is_string() ? "...\"" : "...");
  return text;
}

}  // namespace

RequestNode RequestNode::operator[](std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  if (!value_->is_object()) return {NullJson(), std::move(path)};
  const auto found = value_->find(std::string(key));
  return {found == value_->end() ? NullJson() : *found, std::move(path)};
}

Result<std::vector<RequestNode>> RequestNode::List() const {
  std::vector<RequestNode> nodes;
  if (IsNull()) return nodes;
  if (!IsList()) return Expected("a list");
  nodes.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    nodes.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  }
  return nodes;
}

Result<std::string> RequestNode::Text() const {
  if (!IsText()) return Expected("a text");
  return text();
}

Result<std::string> RequestNode::OptionalText() const {
  if (IsNull()) return std::string();
  return Text();
}

Status RequestNode::CheckObject() const {
  return IsObject() ? Status::Ok() : Expected("an object");
}

Status RequestNode::Expected(std::string_view what) const {
  return InvalidArgument(fmt::format("{}: expected {}, found {}",
                                     path_.empty() ? std::string_view("request") : path_, what,
                                     Describe(*value_)));
}

}  // namespace tq
