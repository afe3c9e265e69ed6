#include "grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

using Key = std::string_view;

// Keywords that restrict, by what they apply to. All others are annotations, as the standard says.
constexpr std::array<Key, 4> kStringKeys = {"minLength", "maxLength", "pattern", "format"};
constexpr std::array<Key, 5> kNumberKeys = {"minimum", "maximum", "exclusiveMinimum",
                                            "exclusiveMaximum", "multipleOf"};
constexpr std::array<Key, 10> kArrayKeys = {
    "items",    "prefixItems", "minItems",    "maxItems",         "uniqueItems",
    "contains", "minContains", "maxContains", "unevaluatedItems", "additionalItems"};
constexpr std::array<Key, 8> kObjectKeys = {
    "properties",    "required",      "additionalProperties", "patternProperties",
    "propertyNames", "minProperties", "maxProperties",        "unevaluatedProperties"};
constexpr std::array<Key, 8> kNeverKeys = {
    "not",        "if", "then", "else", "dependencies", "dependentRequired", "dependentSchemas",
    "$dynamicRef"};
constexpr std::array<Key, 6> kDeciders = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};
constexpr std::array<Key, 14> kFormats = {"email",         "date",
                                          "time",          "date-time",
                                          "duration",      "ipv4",
                                          "ipv6",          "hostname",
                                          "uuid",          "uri",
                                          "uri-reference", "uri-template",
                                          "json-pointer",  "relative-json-pointer"};

template <size_t N>
bool IsIn(const std::array<Key, N>& keys, Key key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

template <size_t N>
bool HasAny(const OrderedJson& schema, const std::array<Key, N>& keys) {
  return std::any_of(keys.begin(), keys.end(), [&](Key key) { return schema.contains(key); });
}

bool Restricts(Key key) {
  return key == "type" || IsIn(kStringKeys, key) || IsIn(kNumberKeys, key) ||
         IsIn(kArrayKeys, key) || IsIn(kObjectKeys, key) || IsIn(kDeciders, key);
}

std::string Escaped(Key key) {
  std::string out;
  for (const char c : key) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

Key TypeOf(const OrderedJson& value) {
  switch (value.type()) {
    case OrderedJson::value_t::null:
      return "null";
    case OrderedJson::value_t::boolean:
      return "boolean";
    case OrderedJson::value_t::string:
      return "string";
    case OrderedJson::value_t::array:
      return "array";
    case OrderedJson::value_t::object:
      return "object";
    case OrderedJson::value_t::number_float:
      return "number";
    default:
      return "integer";
  }
}

bool HasType(const OrderedJson& value, Key type) {
  return TypeOf(value) == type || (type == "number" && value.is_number_integer()) ||
         (type == "integer" && value.is_number_float() &&
          value.get<double>() == static_cast<double>(static_cast<int64_t>(value.get<double>())));
}

class Preparer {
 public:
  Preparer(SchemaMode mode, const RegexCheck& check_regex)
      : mode_(mode), check_regex_(check_regex) {}

  Status Run(OrderedJson& root) {
    TQ_RETURN_IF_ERROR(Visit(root, ""));
    // What references name may lie outside of what schemas contain ("#/components/...").
    while (!targets_.empty()) {
      const std::string target = *targets_.begin();
      targets_.erase(targets_.begin());
      if (visited_.count(target) != 0) {
        continue;
      }
      const OrderedJson::json_pointer pointer(target);
      if (!root.contains(pointer)) {
        return Bad(target, "$ref", "names no part of the schema");
      }
      TQ_RETURN_IF_ERROR(Visit(root[pointer], target));
    }
    return Status::Ok();
  }
  std::vector<std::string> relaxed;

 private:
  static Status Bad(const std::string& at, Key key, const std::string& why) {
    return InvalidArgument(fmt::format("schema at {}: {}: {}", at.empty() ? "/" : at, key, why));
  }

  // What cannot be enforced: refused, or taken out of the schema.
  Status Drop(OrderedJson& schema, const std::string& at, Key key, const std::string& why) {
    if (mode_ == SchemaMode::kRefuse) {
      return Bad(at, key, why);
    }
    relaxed.push_back(fmt::format("{}: {}: {}", at.empty() ? "/" : at, key, why));
    schema.erase(std::string(key));
    return Status::Ok();
  }

  Status Visit(OrderedJson& schema, const std::string& at) {
    if (!visited_.insert(at).second || schema.is_boolean()) {
      return Status::Ok();
    }
    if (!schema.is_object()) {
      return InvalidArgument(fmt::format("schema at {}: expected an object or a boolean, found {}",
                                         at.empty() ? "/" : at, schema.type_name()));
    }
    for (const Key key : kNeverKeys) {
      if (schema.contains(key)) {
        TQ_RETURN_IF_ERROR(Drop(schema, at, key, "cannot be enforced"));
      }
    }
    for (const Key definitions : {"$defs", "definitions"}) {
      TQ_RETURN_IF_ERROR(VisitMap(schema, at, definitions));
    }
    TQ_RETURN_IF_ERROR(Nullable(schema));
    TQ_RETURN_IF_ERROR(MergeAllOf(schema));
    for (const Key decider : kDeciders) {
      if (schema.contains(decider)) {
        TQ_RETURN_IF_ERROR(Siblings(schema, at, decider));
        return Decide(schema, at, decider);
      }
    }
    return Typed(schema, at);
  }

  Status VisitMap(OrderedJson& schema, const std::string& at, Key key) {
    if (!schema.contains(key)) {
      return Status::Ok();
    }
    OrderedJson& map = schema[std::string(key)];
    if (!map.is_object()) {
      return Bad(at, key, "expected an object");
    }
    for (auto& [name, value] : map.items()) {
      TQ_RETURN_IF_ERROR(Visit(value, fmt::format("{}/{}/{}", at, key, Escaped(name))));
    }
    return Status::Ok();
  }

  Status VisitList(OrderedJson& schema, const std::string& at, Key key) {
    OrderedJson& list = schema[std::string(key)];
    if (!list.is_array() || list.empty()) {
      return Bad(at, key, "expected a list that is not empty");
    }
    for (size_t i = 0; i < list.size(); ++i) {
      TQ_RETURN_IF_ERROR(Visit(list[i], fmt::format("{}/{}/{}", at, key, i)));
    }
    return Status::Ok();
  }

  // OpenAPI's spelling of "or null".
  static Status Nullable(OrderedJson& schema) {
    if (schema.contains("nullable") && schema["nullable"] == true && schema.contains("type") &&
        schema["type"].is_string() && schema["type"] != "null" && !HasAny(schema, kDeciders)) {
      schema["type"] = OrderedJson::array({schema["type"], "null"});
    }
    return Status::Ok();
  }

  // One member, or objects that only add properties to each other, become the schema itself.
  static Status MergeAllOf(OrderedJson& schema) {
    if (!schema.contains("allOf") || !schema["allOf"].is_array() || schema["allOf"].empty()) {
      return Status::Ok();
    }
    const auto plain = [](const OrderedJson& part) {
      if (!part.is_object()) {
        return false;
      }
      for (const auto& [key, value] : part.items()) {
        if (Restricts(key) && key != "type" && key != "properties" && key != "required") {
          return false;
        }
      }
      return !HasAny(part, kNeverKeys) && (!part.contains("type") || part["type"] == "object") &&
             (!part.contains("properties") || part["properties"].is_object()) &&
             (!part.contains("required") || part["required"].is_array());
    };
    OrderedJson own = schema;
    own.erase("allOf");
    std::vector<const OrderedJson*> parts = {&own};
    for (const OrderedJson& part : schema["allOf"]) {
      parts.push_back(&part);
    }
    OrderedJson properties = OrderedJson::object();
    OrderedJson required = OrderedJson::array();
    for (const OrderedJson* part : parts) {
      if (!plain(*part)) {
        return Status::Ok();
      }
      const OrderedJson own_properties = part->value("properties", OrderedJson::object());
      for (const auto& [key, value] : own_properties.items()) {
        if (properties.contains(key)) {
          return Status::Ok();
        }
        properties[key] = value;
      }
      for (const OrderedJson& name : part->value("required", OrderedJson::array())) {
        required.push_back(name);
      }
    }
    schema.erase("allOf");
    schema["type"] = "object";
    schema["properties"] = std::move(properties);
    schema["required"] = std::move(required);
    return Status::Ok();
  }

  // The compiler looks at the decider alone.
  Status Siblings(OrderedJson& schema, const std::string& at, Key decider) {
    std::vector<std::string> others;
    for (const auto& [key, value] : schema.items()) {
      if (key != decider && Restricts(key)) {
        others.push_back(key);
      }
    }
    for (const std::string& key : others) {
      if (key == "type" && TypeAgrees(schema, decider)) {
        schema.erase("type");
        continue;
      }
      TQ_RETURN_IF_ERROR(
          Drop(schema, at, key, fmt::format("cannot be enforced beside {}", decider)));
    }
    return Status::Ok();
  }

  // Whether `type` says nothing that the decider does not: then it can go. Values of an enum that
  // have another type go with it.
  static bool TypeAgrees(OrderedJson& schema, Key decider) {
    const OrderedJson type = schema["type"];
    const auto allowed = [&](const OrderedJson& value) {
      if (type.is_string()) {
        return HasType(value, type.get<std::string>());
      }
      return type.is_array() && std::any_of(type.begin(), type.end(), [&](const OrderedJson& t) {
               return t.is_string() && HasType(value, t.get<std::string>());
             });
    };
    if (decider == "const") {
      return allowed(schema["const"]);
    }
    if (decider == "enum") {
      OrderedJson& values = schema["enum"];
      if (!values.is_array()) {
        return false;
      }
      OrderedJson kept = OrderedJson::array();
      for (const OrderedJson& value : values) {
        if (allowed(value)) {
          kept.push_back(value);
        }
      }
      if (kept.empty()) {
        return false;
      }
      values = std::move(kept);
      return true;
    }
    if (decider == "$ref") {
      return false;
    }
    // Each branch says the same, or takes it over.
    OrderedJson& branches = schema[std::string(decider)];
    if (!branches.is_array()) {
      return false;
    }
    for (const OrderedJson& branch : branches) {
      if (!branch.is_object() || HasAny(branch, kDeciders) ||
          (branch.contains("type") && branch["type"] != type)) {
        return false;
      }
    }
    for (OrderedJson& branch : branches) {
      branch["type"] = type;
    }
    return true;
  }

  Status Decide(OrderedJson& schema, const std::string& at, Key decider) {
    if (decider == "$ref") {
      if (!schema["$ref"].is_string()) {
        return Bad(at, decider, "expected a string");
      }
      const std::string target = schema["$ref"];
      if (target.empty() || target[0] != '#' || (target.size() > 1 && target[1] != '/') ||
          target.find('%') != std::string::npos) {
        return Bad(at, decider,
                   fmt::format("expected a pointer into this schema (#/...), found '{}'", target));
      }
      targets_.insert(target.substr(1));
      return Status::Ok();
    }
    if (decider == "enum" && (!schema["enum"].is_array() || schema["enum"].empty())) {
      return Bad(at, decider, "expected a list that is not empty");
    }
    if (decider == "const" || decider == "enum") {
      return Status::Ok();
    }
    if (decider == "allOf" && schema["allOf"].is_array() && schema["allOf"].size() > 1) {
      return Drop(schema, at, decider,
                  "cannot be enforced, but for objects that only add properties to each other");
    }
    return VisitList(schema, at, decider);
  }

  Status Typed(OrderedJson& schema, const std::string& at) {
    if (!schema.contains("type")) {
      const std::array<std::pair<bool, Key>, 4> kinds = {{{HasAny(schema, kObjectKeys), "object"},
                                                          {HasAny(schema, kArrayKeys), "array"},
                                                          {HasAny(schema, kStringKeys), "string"},
                                                          {HasAny(schema, kNumberKeys), "number"}}};
      for (const auto& [has, type] : kinds) {
        if (has && !schema.contains("type")) {
          schema["type"] = type;
        } else if (has) {
          return Bad(at, "type", "missing, and the other keywords belong to several");
        }
      }
    }
    if (!schema.contains("type")) {
      return Status::Ok();
    }
    const OrderedJson types =
        schema["type"].is_array() ? schema["type"] : OrderedJson::array({schema["type"]});
    for (const OrderedJson& type : types) {
      if (!type.is_string()) {
        return Bad(at, "type", "expected a string or a list of strings");
      }
      TQ_RETURN_IF_ERROR(OneType(schema, at, type.get<std::string>()));
    }
    return Status::Ok();
  }

  Status OneType(OrderedJson& schema, const std::string& at, const std::string& type) {
    if (type == "string") {
      return String(schema, at);
    }
    if (type == "array") {
      return Array(schema, at);
    }
    if (type == "object") {
      return Object(schema, at);
    }
    if (type == "number" && schema.contains("multipleOf")) {
      return Drop(schema, at, "multipleOf", "can only be enforced on integers");
    }
    if (type != "number" && type != "integer" && type != "boolean" && type != "null") {
      return Bad(at, "type", fmt::format("expected a type of JSON, found '{}'", type));
    }
    return Status::Ok();
  }

  Status String(OrderedJson& schema, const std::string& at) {
    if (schema.contains("pattern")) {
      if (!schema["pattern"].is_string()) {
        return Bad(at, "pattern", "expected a string");
      }
      Result<std::string> anchored = Anchor(schema["pattern"].get<std::string>());
      if (anchored.ok()) {
        schema["pattern"] = *anchored;
      } else {
        TQ_RETURN_IF_ERROR(Drop(schema, at, "pattern", anchored.status().message()));
      }
    }
    if (schema.contains("format")) {
      if (!schema["format"].is_string()) {
        return Bad(at, "format", "expected a string");
      }
      if (!IsIn(kFormats, schema["format"].get<std::string>())) {
        TQ_RETURN_IF_ERROR(
            Drop(schema, at, "format",
                 fmt::format("'{}' cannot be enforced", schema["format"].get<std::string>())));
      } else if (schema.contains("pattern")) {
        TQ_RETURN_IF_ERROR(Drop(schema, at, "format", "cannot be enforced beside pattern"));
      }
    }
    if (schema.contains("pattern") || schema.contains("format")) {
      for (const Key key : {"minLength", "maxLength"}) {
        if (schema.contains(key)) {
          TQ_RETURN_IF_ERROR(Drop(schema, at, key, "cannot be enforced beside pattern or format"));
        }
      }
    }
    return Status::Ok();
  }

  Result<std::string> Anchor(const std::string& pattern) const {
    TQ_ASSIGN_OR_RETURN(std::string anchored, AnchorPattern(pattern));
    TQ_RETURN_IF_ERROR(check_regex_(anchored));
    return anchored;
  }

  Status Array(OrderedJson& schema, const std::string& at) {
    if (schema.contains("uniqueItems")) {
      if (schema["uniqueItems"] == false) {
        schema.erase("uniqueItems");
      } else {
        TQ_RETURN_IF_ERROR(Drop(schema, at, "uniqueItems", "cannot be enforced"));
      }
    }
    for (const Key key : {"contains", "minContains", "maxContains"}) {
      if (schema.contains(key)) {
        TQ_RETURN_IF_ERROR(Drop(schema, at, key, "cannot be enforced"));
      }
    }
    if (schema.contains("items") && schema["items"].is_array()) {  // before draft 2020-12
      schema["prefixItems"] = schema["items"];
      schema.erase("items");
      if (schema.contains("additionalItems")) {
        schema["items"] = schema["additionalItems"];
      }
    }
    schema.erase("additionalItems");
    if (schema.contains("prefixItems")) {
      if (schema["prefixItems"] == OrderedJson::array()) {
        schema.erase("prefixItems");
      } else {
        TQ_RETURN_IF_ERROR(VisitList(schema, at, "prefixItems"));
        for (OrderedJson& item : schema["prefixItems"]) {
          if (item == true) {
            item = OrderedJson::object();
          }
        }
      }
    }
    if (!schema.contains("items") && !schema.contains("unevaluatedItems") &&
        !schema.contains("prefixItems")) {
      schema["items"] = true;  // the compiler's strict mode would allow none
    }
    for (const Key key : {"items", "unevaluatedItems"}) {
      if (schema.contains(key)) {
        TQ_RETURN_IF_ERROR(Visit(schema[std::string(key)], fmt::format("{}/{}", at, key)));
      }
    }
    return Status::Ok();
  }

  Status Object(OrderedJson& schema, const std::string& at) {
    if (schema.contains("required") && !schema["required"].is_array()) {
      return Bad(at, "required", "expected a list");
    }
    const bool closed =
        schema.contains("additionalProperties") && schema["additionalProperties"] == false;
    for (const OrderedJson& name : schema.value("required", OrderedJson::array())) {
      if (!name.is_string()) {
        return Bad(at, "required", "expected a list of strings");
      }
      const std::string key = name;
      if (!schema.contains("properties")) {
        schema["properties"] = OrderedJson::object();
      }
      if (schema["properties"].is_object() && !schema["properties"].contains(key)) {
        if (closed) {
          return Bad(at, "required", fmt::format("'{}' is no property of it", key));
        }
        schema["properties"][key] = OrderedJson::object();
      }
    }
    TQ_RETURN_IF_ERROR(VisitMap(schema, at, "properties"));
    if (schema.contains("patternProperties")) {
      TQ_RETURN_IF_ERROR(PatternProperties(schema, at));
    }
    if (schema.contains("propertyNames")) {
      OrderedJson& names = schema["propertyNames"];
      if (names == true) {
        schema.erase("propertyNames");
      } else {
        if (names.is_object() && !names.contains("type") && !HasAny(names, kDeciders)) {
          names["type"] = "string";
        }
        TQ_RETURN_IF_ERROR(Visit(names, at + "/propertyNames"));
      }
    }
    // A schema that names no property means any of them; one that does is meant to be complete.
    if (!HasAny(schema, std::array<Key, 4>{"additionalProperties", "unevaluatedProperties",
                                           "patternProperties", "propertyNames"}) &&
        (!schema.contains("properties") || schema["properties"].empty())) {
      schema["additionalProperties"] = true;
    }
    for (const Key key : {"additionalProperties", "unevaluatedProperties"}) {
      if (schema.contains(key)) {
        TQ_RETURN_IF_ERROR(Visit(schema[std::string(key)], fmt::format("{}/{}", at, key)));
      }
    }
    return Status::Ok();
  }

  Status PatternProperties(OrderedJson& schema, const std::string& at) {
    TQ_RETURN_IF_ERROR(VisitMap(schema, at, "patternProperties"));
    OrderedJson anchored_map = OrderedJson::object();
    for (const auto& [pattern, value] : schema["patternProperties"].items()) {
      Result<std::string> anchored = Anchor(pattern);
      if (!anchored.ok()) {
        return Drop(schema, at, "patternProperties", anchored.status().message());
      }
      anchored_map[*anchored] = value;
    }
    schema["patternProperties"] = std::move(anchored_map);
    return Status::Ok();
  }

  SchemaMode mode_;
  const RegexCheck& check_regex_;
  std::set<std::string> visited_;
  std::set<std::string> targets_;
};

}  // namespace

Result<PreparedSchema> PrepareSchema(std::string_view schema, SchemaMode mode,
                                     const RegexCheck& check_regex) {
  Result<OrderedJson> root = ParseOrderedJson(schema, "schema", 64);
  if (!root.ok()) {
    return InvalidArgument(root.status().message());
  }
  Preparer preparer(mode, check_regex);
  TQ_RETURN_IF_ERROR(preparer.Run(*root));
  return PreparedSchema{root->dump(), std::move(preparer.relaxed)};
}

}  // namespace tq
