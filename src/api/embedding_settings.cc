#include "api/embedding_settings.h"

#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tq {
namespace {

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// {"pooling_mode_mean_tokens": true, ...} with one that is true, or {"pooling_mode": "mean"}.
Result<Pooling> ReadPooling(const WeightSource& source, const std::string& where) {
  constexpr std::string_view kFlag = "pooling_mode_";
  TQ_ASSIGN_OR_RETURN(const std::string text, source.ReadDocument(where));
  TQ_ASSIGN_OR_RETURN(const Json config, ParseJson(text, where));
  if (!config.is_object()) return Corrupt(where + ": expected an object");
  std::string mode = TextOf(config, "pooling_mode");
  for (const auto& [key, value] : config.items()) {
    if (!std::string_view(key).starts_with(kFlag) || value != true) continue;
    if (!mode.empty()) {
      return Unsupported(
          fmt::format("{}: expected one kind of pooling, found {} and {}", where, mode, key));
    }
    mode = key.substr(kFlag.size());
  }
  if (mode == "mean" || mode == "mean_tokens") return Pooling::kMean;
  if (mode == "cls" || mode == "cls_token") return Pooling::kFirst;
  if (mode == "lasttoken") return Pooling::kLast;
  return Unsupported(fmt::format(
      "{}: expected mean, cls or lasttoken pooling, found \"{}\": give --embedding-pooling", where,
      mode));
}

}  // namespace

Result<EmbeddingSettings> ReadEmbeddingSettings(const WeightSource& source) {
  constexpr const char* kModules = "modules.json";
  EmbeddingSettings settings;
  const Result<std::string> text = source.ReadDocument(kModules);
  if (!text.ok()) {
    if (text.status().code() == StatusCode::kNotFound) return settings;
    return text.status();
  }
  TQ_ASSIGN_OR_RETURN(const Json modules, ParseJson(*text, kModules));
  if (!modules.is_array()) return Corrupt("modules.json: expected a list of modules");
  settings.normalize = false;
  for (const Json& module : modules) {
    const std::string type = module.is_object() ? TextOf(module, "type") : "";
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer") continue;
    if (name == "Normalize") {
      settings.normalize = true;
    } else if (name == "Pooling") {
      TQ_ASSIGN_OR_RETURN(settings.pooling,
                          ReadPooling(source, TextOf(module, "path") + "/config.json"));
    } else {
      return Unsupported(
          fmt::format("modules.json: expected Transformer, Pooling and Normalize, found \"{}\", "
                      "which is not computed here: give --embedding-pooling to do without",
                      type));
    }
  }
  return settings;
}

}  // namespace tq
