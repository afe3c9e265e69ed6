// Precompiled: SentencePiece's charsmap as Hugging Face applies it: by grapheme cluster when that
// is short, else by character, and of several entries the shortest.
#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/base64.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

class PrecompiledNormalizer : public Normalizer {
 public:
  explicit PrecompiledNormalizer(Charsmap map) : map_(std::move(map)) {}

  void Apply(std::string* text, bool*) const override {
    std::string out;
    out.reserve(text->size());
    const std::string_view in = *text;
    for (size_t begin = 0; begin < in.size();) {
      const size_t end = GraphemeEnd(in, begin);
      const std::string_view cluster = in.substr(begin, end - begin);
      begin = end;
      if (cluster.size() < kMaxClusterBytes) {
        if (const auto match = map_.Shortest(cluster)) {
          out += match->content;
          continue;
        }
      }
      for (size_t pos = 0; pos < cluster.size();) {
        const size_t at = pos;
        NextChar(cluster, &pos);
        const std::string_view c = cluster.substr(at, pos - at);
        const auto match = map_.Shortest(c);
        out += match ? match->content : c;
      }
    }
    *text = std::move(out);
  }
  double Growth() const override {
    return std::max(1.0, static_cast<double>(map_.max_content_bytes()));
  }

 private:
  static constexpr size_t kMaxClusterBytes = 6;
  Charsmap map_;
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakePrecompiled(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const std::string text = reader.String("precompiled_charsmap", "");
  TQ_RETURN_IF_ERROR(reader.status());
  const std::optional<std::string> blob = DecodeBase64(text);
  if (!blob) return Corrupt(where + ": precompiled_charsmap: expected Base64");
  TQ_ASSIGN_OR_RETURN(Charsmap map, Charsmap::Parse(*blob, where + ": precompiled_charsmap"));
  return std::unique_ptr<Normalizer>(std::make_unique<PrecompiledNormalizer>(std::move(map)));
}

}  // namespace tq::tok
