#include "grammar/structural_tag.h"

#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

class Preparer {
 public:
  Preparer(SchemaMode mode, const RegexCheck& check_regex, const SpecialMarks& marks)
      : mode_(mode), check_regex_(check_regex), marks_(marks) {}

  Status Visit(OrderedJson& node) {
    if (node.is_array()) {
      for (OrderedJson& part : node) TQ_RETURN_IF_ERROR(Visit(part));
    }
    if (!node.is_object()) return Status::Ok();
    const auto type = node.find("type");
    if (type != node.end() && *type == "any_text") Exclude(node);
    for (auto& [key, value] : node.items()) {
      if (key == "json_schema") {
        TQ_RETURN_IF_ERROR(Schema(value));
      } else if (key == "value" || key == "begin" || key == "end") {
        Replace(value);
      } else {
        TQ_RETURN_IF_ERROR(Visit(value));
      }
    }
    return Status::Ok();
  }

  std::vector<std::string> relaxed;

 private:
  Status Schema(OrderedJson& schema) {
    TQ_ASSIGN_OR_RETURN(PreparedSchema prepared, PrepareSchema(schema.dump(), mode_, check_regex_));
    for (std::string& note : prepared.relaxed) {
      // The forms of one argument say the same.
      if (std::find(relaxed.begin(), relaxed.end(), note) == relaxed.end()) {
        relaxed.push_back(std::move(note));
      }
    }
    TQ_ASSIGN_OR_RETURN(schema, ParseOrderedJson(prepared.text, "schema"));
    return Status::Ok();
  }

  void Replace(OrderedJson& texts) const {
    if (texts.is_string()) texts = marks_.Replace(texts.get<std::string>());
    if (!texts.is_array()) return;
    for (OrderedJson& text : texts) Replace(text);
  }

  void Exclude(OrderedJson& any_text) const {
    OrderedJson& excludes = any_text["excludes"];
    if (!excludes.is_array()) excludes = OrderedJson::array();
    for (const std::string& stand_in : marks_.StandIns()) excludes.push_back(stand_in);
  }

  SchemaMode mode_;
  const RegexCheck& check_regex_;
  const SpecialMarks& marks_;
};

}  // namespace

Result<PreparedSchema> PrepareStructuralTag(std::string_view tag, SchemaMode mode,
                                            const RegexCheck& check_regex,
                                            const SpecialMarks& marks) {
  Result<OrderedJson> root = ParseOrderedJson(tag, "structural tag", 128);
  if (!root.ok()) return InvalidArgument(root.status().message());
  Preparer preparer(mode, check_regex, marks);
  TQ_RETURN_IF_ERROR(preparer.Visit(*root));
  return PreparedSchema{root->dump(), std::move(preparer.relaxed)};
}

}  // namespace tq
