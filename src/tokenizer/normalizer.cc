#include "tokenizer/normalizer.h"

#include <cmath>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/byte_chars.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace tq::tok {
namespace {

using NormalizerPtr = std::unique_ptr<Normalizer>;

class UnicodeFormNormalizer : public Normalizer {
 public:
  explicit UnicodeFormNormalizer(NormalForm form) : form_(form) {}
  void Apply(std::string* text, bool*) const override { *text = Normalize(*text, form_); }
  // U+FDFA in the compatibility forms; U+1D160 and the like in the canonical ones.
  double Growth() const override {
    return form_ == NormalForm::kNfkc || form_ == NormalForm::kNfkd ? 11.0 : 3.0;
  }

 private:
  NormalForm form_;
};

template <NormalForm form>
Result<NormalizerPtr> MakeForm(const Json&, const std::string&) {
  return NormalizerPtr(std::make_unique<UnicodeFormNormalizer>(form));
}

class LowercaseNormalizer : public Normalizer {
 public:
  void Apply(std::string* text, bool*) const override {
    std::string out;
    out.reserve(text->size());
    for (size_t pos = 0; pos < text->size();) AppendLowerCase(NextChar(*text, &pos), &out);
    *text = std::move(out);
  }
  double Growth() const override { return 1.5; }
};

class StripAccentsNormalizer : public Normalizer {
 public:
  void Apply(std::string* text, bool*) const override {
    std::string out;
    out.reserve(text->size());
    for (size_t pos = 0; pos < text->size();) {
      const char32_t c = NextChar(*text, &pos);
      if (!IsMark(c)) AppendUtf8(c, &out);
    }
    *text = std::move(out);
  }
  double Growth() const override { return 1.0; }
};

class ByteLevelNormalizer : public Normalizer {
 public:
  void Apply(std::string* text, bool*) const override {
    std::string out;
    out.reserve(2 * text->size());
    AppendByteChars(*text, &out);
    *text = std::move(out);
  }
  double Growth() const override { return 2.0; }
};

template <typename T>
Result<NormalizerPtr> MakePlain(const Json&, const std::string&) {
  return NormalizerPtr(std::make_unique<T>());
}

class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  void Apply(std::string* text, bool* at_start) const override {
    size_t begin = 0;
    while (left_ && begin < text->size()) {
      size_t next = begin;
      if (!IsWhiteSpace(NextChar(*text, &next))) break;
      begin = next;
    }
    size_t end = text->size();
    while (right_ && end > begin) {
      size_t start = PreviousCharStart(*text, end);
      size_t pos = start;
      if (!IsWhiteSpace(NextChar(*text, &pos))) break;
      end = start;
    }
    if (begin > 0) *at_start = false;
    *text = text->substr(begin, end - begin);
  }
  double Growth() const override { return 1.0; }

 private:
  bool left_;
  bool right_;
};

Result<NormalizerPtr> MakeStrip(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  const bool left = reader.Bool("strip_left", true);
  const bool right = reader.Bool("strip_right", true);
  TQ_RETURN_IF_ERROR(reader.status());
  return NormalizerPtr(std::make_unique<StripNormalizer>(left, right));
}

class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  void Apply(std::string* text, bool*) const override {
    if (!text->empty()) text->insert(0, prefix_);
  }
  double Growth() const override { return 1.0 + static_cast<double>(prefix_.size()); }

 private:
  std::string prefix_;
};

Result<NormalizerPtr> MakePrepend(const Json& json, const std::string& where) {
  ConfigReader reader(json, where);
  std::string prefix = reader.String("prepend", "");
  TQ_RETURN_IF_ERROR(reader.status());
  return NormalizerPtr(std::make_unique<PrependNormalizer>(std::move(prefix)));
}

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void Apply(std::string* text, bool*) const override {
    *text = pattern_.ReplaceAll(*text, content_);
  }
  double Growth() const override { return pattern_.ReplaceGrowth(content_.size()); }

 private:
  Pattern pattern_;
  std::string content_;
};

Result<NormalizerPtr> MakeReplace(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(Replacement replacement, Replacement::FromJson(json, where));
  return NormalizerPtr(std::make_unique<ReplaceNormalizer>(std::move(replacement.pattern),
                                                           std::move(replacement.content)));
}

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<NormalizerPtr> members) : members_(std::move(members)) {}
  void Apply(std::string* text, bool* at_start) const override {
    for (const NormalizerPtr& member : members_) member->Apply(text, at_start);
  }
  double Growth() const override {
    double growth = 1.0;
    for (const NormalizerPtr& member : members_) growth *= member->Growth();
    return growth;
  }

 private:
  std::vector<NormalizerPtr> members_;
};

Result<NormalizerPtr> MakeSequenceNormalizer(const Json& json, const std::string& where) {
  TQ_ASSIGN_OR_RETURN(std::vector<NormalizerPtr> members,
                      MakeSequence<NormalizerPtr>(&MakeNormalizer, json, "normalizers", where));
  return NormalizerPtr(std::make_unique<SequenceNormalizer>(std::move(members)));
}

constexpr Factory<NormalizerPtr> kFactories[] = {
    {"NFC", &MakeForm<NormalForm::kNfc>},
    {"NFD", &MakeForm<NormalForm::kNfd>},
    {"NFKC", &MakeForm<NormalForm::kNfkc>},
    {"NFKD", &MakeForm<NormalForm::kNfkd>},
    {"Lowercase", &MakePlain<LowercaseNormalizer>},
    {"StripAccents", &MakePlain<StripAccentsNormalizer>},
    {"ByteLevel", &MakePlain<ByteLevelNormalizer>},
    {"BertNormalizer", &MakeBertNormalizer},
    {"Precompiled", &MakePrecompiled},
    {"Strip", &MakeStrip},
    {"Prepend", &MakePrepend},
    {"Replace", &MakeReplace},
    {"Sequence", &MakeSequenceNormalizer},
};

}  // namespace

Result<NormalizerPtr> MakeNormalizer(const Json& json, const std::string& where) {
  return MakeComponent<NormalizerPtr>(kFactories, json, where);
}

}  // namespace tq::tok
