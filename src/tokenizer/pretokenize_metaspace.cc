// Metaspace: a space becomes a visible character that opens a word, as SentencePiece does it.
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/pretokenizer.h"

namespace tq::tok {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

Result<MetaspaceConfig> ParseMetaspace(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  MetaspaceConfig config;
  TQ_ASSIGN_OR_RETURN(config.replacement, OneCharField(&reader, "replacement", "\xE2\x96\x81"));
  const std::string scheme = reader.String("prepend_scheme", "always");
  const bool add_prefix_space = reader.Bool("add_prefix_space", true);
  config.split = reader.Bool("split", true);
  TQ_RETURN_IF_ERROR(reader.status());
  if (scheme == "always") {
    config.prepend = MetaspaceConfig::Prepend::kAlways;
  } else if (scheme == "first") {
    config.prepend = MetaspaceConfig::Prepend::kFirst;
  } else if (scheme == "never") {
    config.prepend = MetaspaceConfig::Prepend::kNever;
  } else {
    return Unsupported(where + ": prepend_scheme " + Quoted(scheme));
  }
  // The older spelling of "never".
  if (!add_prefix_space) config.prepend = MetaspaceConfig::Prepend::kNever;
  return config;
}

namespace {

class MetaspacePreTokenizer : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(MetaspaceConfig config)
      : config_(std::move(config)),
        space_(Pattern::Literal(" ")),
        mark_(Pattern::Literal(config_.replacement)) {}

  void Apply(Pieces* pieces) const override {
    std::string text;
    text.reserve(pieces->text.size() + pieces->text.size() / 2);
    for (Piece& piece : pieces->pieces) {
      const std::string marked = space_.ReplaceAll(pieces->View(piece), config_.replacement);
      const bool wanted = config_.prepend == MetaspaceConfig::Prepend::kAlways ||
                          (config_.prepend == MetaspaceConfig::Prepend::kFirst && piece.at_start);
      piece.begin = text.size();
      if (wanted && !marked.starts_with(config_.replacement)) text.append(config_.replacement);
      text.append(marked);
      piece.end = text.size();
    }
    pieces->text = std::move(text);
    if (config_.split) SplitPieces(mark_, SplitBehavior::kMergedWithNext, false, pieces);
  }
  // Each piece may get one mark.
  double Growth() const override { return 1.0 + static_cast<double>(config_.replacement.size()); }

 private:
  MetaspaceConfig config_;
  Pattern space_;
  Pattern mark_;
};

}  // namespace

Result<PreTokenizerPtr> MakeMetaspacePreTokenizer(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(MetaspaceConfig config, ParseMetaspace(json, where));
  return PreTokenizerPtr(std::make_unique<MetaspacePreTokenizer>(std::move(config)));
}

}  // namespace tq::tok
