#include "chat/output/tagged_arguments.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/output/grammar_parts.h"

namespace tq {
namespace {

using grammar::OneOf;
using grammar::Optional;
using grammar::Regex;
using grammar::Schema;
using grammar::Sequence;
using grammar::Space;
using grammar::Text;
using grammar::TextUntil;

struct Property {
  std::string key;
  OrderedJson schema;  // by itself
  bool required = false;
};

// Those of an object, each with the definitions that its references are to.
std::vector<Property> PropertiesOf(const OrderedJson& schema) {
  std::vector<Property> out;
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return out;
  const auto required = schema.find("required");
  for (const auto& [key, value] : properties->items()) {
    Property property{key, value.is_object() ? value : OrderedJson::object(), false};
    for (const char* name : {"$defs", "definitions"}) {
      if (schema.contains(name) && !property.schema.contains(name)) {
        property.schema[name] = schema[name];
      }
    }
    property.required = required != schema.end() && required->is_array() &&
                        std::find(required->begin(), required->end(), key) != required->end();
    out.push_back(std::move(property));
  }
  return out;
}

bool IsTextList(const OrderedJson& schema) {
  const auto found = schema.find("enum");
  return found != schema.end() && found->is_array() && !found->empty() &&
         std::all_of(found->begin(), found->end(),
                     [](const OrderedJson& v) { return v.is_string(); });
}

// What a tag says about its value, where the syntax wants it.
std::string Attribute(ToolSyntax syntax, const TypeSet& types, bool is_text) {
  if (syntax == ToolSyntax::kDeepSeekXml) return is_text ? " string=\"true\"" : " string=\"false\"";
  if (syntax != ToolSyntax::kKimiXml) return "";
  std::string_view type = "string";
  if (!is_text) {
    type = types.object                    ? "object"
           : types.array                   ? "array"
           : types.boolean                 ? "boolean"
           : types.integer || types.number ? "number"
                                           : "null";
  }
  return " type=\"" + std::string(type) + "\"";
}

OrderedJson Argument(const ToolFormat& format, const TypeSet& types, const Property& property) {
  const bool is_text = types.string || types.empty();
  std::string begin(format.param_open);
  begin += property.key;
  begin += format.key_close;
  if (!format.attributes_close.empty()) {
    begin += Attribute(format.syntax, types, is_text);
    begin += format.attributes_close;
  }
  std::vector<OrderedJson> parts;
  if (!format.value_open.empty()) {
    parts = {Text(begin), Space()};
    begin = format.value_open;
  }
  if (is_text && !IsTextList(property.schema)) {
    parts.push_back(TextUntil(begin, format.value_close));
    return Sequence(std::move(parts));
  }
  // One line feed at either end belongs to the tags.
  parts.insert(parts.end(), {Text(begin), Regex("\\n?")});
  if (is_text) {
    std::vector<OrderedJson> texts;
    for (const OrderedJson& value : property.schema["enum"]) {
      texts.push_back(Text(value.get<std::string>()));
    }
    parts.push_back(OneOf(std::move(texts)));
  } else {
    parts.push_back(Schema(property.schema));
  }
  parts.insert(parts.end(), {Regex("\\n?"), Text(format.value_close)});
  return Sequence(std::move(parts));
}

}  // namespace

OrderedJson TaggedArguments(const ToolFormat& format, const ToolTypes& types,
                            const std::string& tool, const OrderedJson& schema) {
  std::vector<OrderedJson> parts = {Text("")};
  for (const Property& property : PropertiesOf(schema)) {
    OrderedJson one =
        Sequence({Argument(format, types.TypeOf(tool, property.key), property), Space()});
    parts.push_back(property.required ? std::move(one) : Optional(std::move(one)));
  }
  return Sequence(std::move(parts));
}

OrderedJson PythonArguments(const OrderedJson& schema) {
  const std::vector<Property> properties = PropertiesOf(schema);
  // From the last one on: what may follow an argument, and what may be the first one.
  OrderedJson rest = Text("");
  std::vector<OrderedJson> firsts;
  for (size_t i = properties.size(); i-- > 0;) {
    const Property& property = properties[i];
    const OrderedJson one = Sequence({Text(property.key + "="), Schema(property.schema)});
    if (property.required) firsts.clear();
    firsts.push_back(Sequence({one, rest}));
    const OrderedJson next = Sequence({Text(", "), one});
    rest = Sequence({property.required ? next : Optional(next), rest});
  }
  const bool any_required = std::any_of(properties.begin(), properties.end(),
                                        [](const Property& property) { return property.required; });
  if (!any_required) firsts.push_back(Text(""));
  return OneOf(std::move(firsts));
}

}  // namespace tq
