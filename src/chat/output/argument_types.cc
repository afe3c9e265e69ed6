#include "chat/output/argument_types.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <nlohmann/json.hpp>

#include "chat/output/json_scanner.h"
#include "chat/output/literal_scanner.h"

namespace tq {
namespace {

constexpr int kMaxSchemaDepth = 16;

void AddTypeName(std::string_view name, TypeSet& types) {
  const auto begins = [name](std::string_view with) { return name.starts_with(with); };
  if (name == "string" || name == "str" || name == "text" || name == "enum") {
    types.string = true;
  } else if (begins("int") || begins("uint") || begins("long") || begins("short") ||
             begins("unsigned")) {
    types.integer = true;
  } else if (begins("num") || begins("float") || begins("double")) {
    types.number = true;
  } else if (begins("bool")) {
    types.boolean = true;
  } else if (name == "object" || begins("dict")) {
    types.object = true;
  } else if (begins("arr") || begins("list")) {
    types.array = true;
  } else if (name == "null") {
    types.null = true;
  } else {
    types.string = true;
  }
}

void AddValueType(const OrderedJson& value, TypeSet& types) {
  if (value.is_string()) types.string = true;
  if (value.is_number_integer()) types.integer = true;
  if (value.is_number_float()) types.number = true;
  if (value.is_boolean()) types.boolean = true;
  if (value.is_object()) types.object = true;
  if (value.is_array()) types.array = true;
  if (value.is_null()) types.null = true;
}

// "#/$defs/Name" of the schema; nullptr: elsewhere.
const OrderedJson* Resolve(const OrderedJson& root, const std::string& reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const OrderedJson* at = &root;
  std::string_view rest = std::string_view(reference).substr(2);
  while (at != nullptr && !rest.empty()) {
    const std::string part(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const auto found = at->is_object() ? at->find(part) : at->end();
    at = at->is_object() && found != at->end() ? &*found : nullptr;
  }
  return at;
}

void AddTypes(const OrderedJson& schema, const OrderedJson& root, int depth, TypeSet& types) {
  if (!schema.is_object() || depth > kMaxSchemaDepth) return;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) AddTypeName(type->get_ref<const std::string&>(), types);
    if (type->is_array()) {
      for (const OrderedJson& name : *type) {
        if (name.is_string()) AddTypeName(name.get_ref<const std::string&>(), types);
      }
    }
    return;
  }
  if (const auto reference = schema.find("$ref");
      reference != schema.end() && reference->is_string()) {
    const OrderedJson* target = Resolve(root, reference->get_ref<const std::string&>());
    if (target != nullptr) AddTypes(*target, root, depth + 1, types);
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    const auto choices = schema.find(key);
    if (choices == schema.end() || !choices->is_array()) continue;
    for (const OrderedJson& choice : *choices) AddTypes(choice, root, depth + 1, types);
  }
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    for (const OrderedJson& value : *values) AddValueType(value, types);
  }
  if (const auto value = schema.find("const"); value != schema.end()) AddValueType(*value, types);
  if (schema.contains("properties")) types.object = true;
  if (schema.contains("items")) types.array = true;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsJsonSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsJsonSpace(text.back())) text.remove_suffix(1);
  return text;
}

bool IsWord(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

// An integer, however long, also when it is written with a fraction of zeros.
std::optional<std::string> Integer(std::string_view text) {
  std::string json;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (!IsJsonValue(text, &json)) return std::nullopt;
  const size_t dot = json.find('.');
  if (dot != std::string::npos && json.find_first_not_of('0', dot + 1) == std::string::npos) {
    json.resize(dot);
  }
  const size_t digits = json.find_first_of("0123456789");
  if (digits > 1 || json.find_first_not_of("-0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return json;
}

std::optional<std::string> Number(std::string_view text) {
  std::string json;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) return std::nullopt;
  if (!IsJsonValue(text, &json)) return std::nullopt;
  return json;
}

}  // namespace

ToolTypes::ToolTypes(const std::vector<ToolSpec>& tools) {
  for (const ToolSpec& tool : tools) {
    std::vector<Argument>& arguments = tools_[tool.name];
    if (!tool.function.is_object()) continue;
    const auto schema = tool.function.find("parameters");
    if (schema == tool.function.end() || !schema->is_object()) continue;
    const auto properties = schema->find("properties");
    if (properties == schema->end() || !properties->is_object()) continue;
    for (const auto& [key, value] : properties->items()) {
      TypeSet types;
      AddTypes(value, *schema, 0, types);
      arguments.emplace_back(key, types);
    }
  }
}

TypeSet ToolTypes::TypeOf(std::string_view tool, std::string_view key) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return {};
  for (const Argument& argument : found->second) {
    if (argument.first == key) return argument.second;
  }
  return {};
}

std::optional<std::string> ToolTypes::KeyAt(std::string_view tool, size_t position) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end() || position >= found->second.size()) return std::nullopt;
  return found->second[position].first;
}

std::optional<std::string> TypedJson(std::string_view text, const TypeSet& types,
                                     const ValueRules& rules) {
  const std::string_view trimmed = Trim(text);
  if ((rules.null_is_word || types.null) && IsWord(trimmed, "null")) return "null";
  if (types.only_string() || (types.empty() && rules.untyped_is_string)) return JsonString(text);
  const bool any = types.empty();
  std::string json;
  if (types.integer) {
    if (std::optional<std::string> integer = Integer(trimmed)) return integer;
  }
  if (types.number) {
    if (std::optional<std::string> number = Number(trimmed)) return number;
  }
  if (types.boolean) {
    if (IsWord(trimmed, "true")) return "true";
    if (IsWord(trimmed, "false")) return "false";
  }
  if (types.structured() || any) {
    const bool is_structured = trimmed.starts_with('{') || trimmed.starts_with('[');
    if ((any || is_structured) && IsJsonValue(trimmed, &json)) return json;
    if ((any || is_structured) && IsLiteral(trimmed, &json)) return json;
  }
  if (types.string || any || types.structured()) return JsonString(text);
  if (types.boolean && !types.integer && !types.number) return "false";
  return std::nullopt;
}

}  // namespace tq
