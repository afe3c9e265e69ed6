#include "weights/gguf_documents.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "weights/gguf_tokenizer.h"

namespace tq {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

// One template is a string, several are a list of {name, template}.
Json ChatTemplates(GgufKeys& keys) {
  Json named = Json::array();
  if (keys.Has(kTemplateKey)) {
    named.push_back({{"name", "default"}, {"template", keys.String(kTemplateKey, "")}});
  }
  for (const std::string& key : keys.WithPrefix(std::string(kTemplateKey) + '.')) {
    named.push_back(
        {{"name", key.substr(kTemplateKey.size() + 1)}, {"template", keys.String(key, "")}});
  }
  if (named.size() == 1 && named[0]["name"] == "default") return named[0]["template"];
  return named.empty() ? Json() : named;
}

}  // namespace

Result<std::string> DumpDocument(const Json& document, const std::string& where) {
  try {
    return document.dump(1);
  } catch (const Json::exception&) {
    return Corrupt(where + ": a text of the metadata is not UTF-8");
  }
}

Result<std::string> GgufTokenizerConfigJson(const GgufFile& file, const std::string& where) {
  GgufKeys keys(file, where);
  TQ_ASSIGN_OR_RETURN(const GgufVocab vocab, ReadGgufVocab(keys));
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"clean_up_tokenization_spaces", false}};
  for (const auto& [name, id] :
       {std::pair("bos_token", vocab.bos), std::pair("eos_token", vocab.eos),
        std::pair("unk_token", vocab.unknown), std::pair("pad_token", vocab.padding)}) {
    if (id) config[name] = std::string(vocab.Text(*id));
  }
  config["add_bos_token"] = GgufAddsBos(keys, vocab);
  config["add_eos_token"] = keys.Bool("tokenizer.ggml.add_eos_token", false);
  const Json templates = ChatTemplates(keys);
  if (!templates.is_null()) config["chat_template"] = templates;
  const std::string context = keys.Arch("context_length");
  if (keys.Has(context)) config["model_max_length"] = keys.Int(context, 0, 0, int64_t{1} << 40);
  TQ_RETURN_IF_ERROR(keys.status());
  return DumpDocument(config, where + ": tokenizer_config.json");
}

Result<std::string> GgufGenerationConfigJson(const GgufFile& file, const std::string& where) {
  GgufKeys keys(file, where);
  TQ_ASSIGN_OR_RETURN(const GgufVocab vocab, ReadGgufVocab(keys));
  Json config = Json::object();
  if (vocab.bos) config["bos_token_id"] = *vocab.bos;
  if (vocab.padding) config["pad_token_id"] = *vocab.padding;
  const std::vector<int64_t> ends = vocab.EndIds();
  if (!ends.empty()) config["eos_token_id"] = ends;
  return DumpDocument(config, where + ": generation_config.json");
}

Result<std::string> GgufTokenizerJson(const GgufFile& file, const std::string& where) {
  GgufKeys keys(file, where);
  // The original file itself, when the writer kept it.
  constexpr std::string_view kOriginal = "tokenizer.huggingface.json";
  if (keys.Has(kOriginal)) {
    const std::string original = keys.String(kOriginal, "");
    TQ_RETURN_IF_ERROR(keys.status());
    return original;
  }
  TQ_ASSIGN_OR_RETURN(const Json tokenizer, BuildGgufTokenizer(keys));
  return DumpDocument(tokenizer, where + ": tokenizer.json");
}

}  // namespace tq
