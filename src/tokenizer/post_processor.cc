#include "tokenizer/post_processor.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/vocabulary.h"

namespace tq::tok {
namespace {

// It only moves offsets, which we do not report.
Result<PostProcessor> MakeByteLevel(const Json&, const std::string&) { return PostProcessor(); }

// The ids that "special_tokens" lists for a name.
Result<std::vector<int32_t>> TemplateIds(const Json* special_tokens, const std::string& name,
                                         const std::string& where) {
  std::vector<int32_t> out;
  const Json* ids = nullptr;
  if (special_tokens != nullptr && special_tokens->is_object() && special_tokens->contains(name)) {
    const Json& entry = (*special_tokens)[name];
    if (entry.is_object() && entry.contains("ids")) ids = &entry["ids"];
  }
  if (ids == nullptr || !ids->is_array()) {
    return Corrupt(where + ": special_tokens: expected a list of ids for " + Quoted(name));
  }
  for (const Json& id_json : *ids) {
    TQ_ASSIGN_OR_RETURN(const int32_t id, ParseTokenId(id_json, where + ": special_tokens"));
    out.push_back(id);
  }
  return out;
}

Result<PostProcessor> MakeTemplate(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const Json* single = reader.Raw("single");
  const Json* special_tokens = reader.Raw("special_tokens");
  TQ_RETURN_IF_ERROR(reader.status());
  if (single == nullptr || !single->is_array()) {
    return Corrupt(where + ": single: expected a list of parts");
  }
  PostProcessor out;
  int num_texts = 0;
  for (const Json& part : *single) {
    if (!part.is_object() || part.size() != 1) {
      return Corrupt(where + ": single: expected {\"SpecialToken\": ...} or {\"Sequence\": ...}");
    }
    ConfigReader item(*part.begin(), where + ": single");
    const std::string name = item.String("id", "");
    TQ_RETURN_IF_ERROR(item.status());
    if (part.begin().key() == "Sequence" && name == "A") {
      ++num_texts;
      continue;
    }
    if (part.begin().key() != "SpecialToken") {
      return Unsupported(where + ": single: part " + Quoted(part.begin().key()) + " " +
                         Quoted(name));
    }
    TQ_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, TemplateIds(special_tokens, name, where));
    std::vector<int32_t>& side = num_texts == 0 ? out.prefix : out.suffix;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (num_texts != 1) {
    return Unsupported(where + ": single holds the text " + std::to_string(num_texts) +
                       " times, expected once");
  }
  return out;
}

// ["[CLS]", 101]
Result<int32_t> PairedId(const Json& json, std::string_view key, const std::string& where) {
  const auto it = json.find(key);
  const std::string place = where + ": " + std::string(key);
  if (it == json.end() || !it->is_array() || it->size() != 2) {
    return Corrupt(place + ": expected [content, id]");
  }
  return ParseTokenId((*it)[1], place);
}

Result<PostProcessor> MakeClsSep(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(const int32_t cls, PairedId(json, "cls", where));
  TQ_ASSIGN_OR_RETURN(const int32_t sep, PairedId(json, "sep", where));
  return PostProcessor{.prefix = {cls}, .suffix = {sep}};
}

Result<PostProcessor> MakeSequenceProcessor(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(const std::vector<PostProcessor> members,
                      MakeSequence<PostProcessor>(&MakePostProcessor, json, "processors", where));
  PostProcessor out;
  for (const PostProcessor& member : members) {  // each wraps what the earlier ones made
    out.prefix.insert(out.prefix.begin(), member.prefix.begin(), member.prefix.end());
    out.suffix.insert(out.suffix.end(), member.suffix.begin(), member.suffix.end());
  }
  return out;
}

constexpr Factory<PostProcessor> kFactories[] = {
    {"BertProcessing", &MakeClsSep},       {"ByteLevel", &MakeByteLevel},
    {"RobertaProcessing", &MakeClsSep},    {"Sequence", &MakeSequenceProcessor},
    {"TemplateProcessing", &MakeTemplate},
};

}  // namespace

Result<PostProcessor> MakePostProcessor(const Json& json, const std::string& where) {
  return MakeComponent<PostProcessor>(kFactories, json, where);
}

}  // namespace tq::tok
