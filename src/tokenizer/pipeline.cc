#include "tokenizer/pipeline.h"

#include <algorithm>
#include <utility>

#include "tokenizer/unicode.h"

namespace tq {
namespace tok {
namespace {

class PipelineStream : public DecodeStream {
 public:
  PipelineStream(const Pipeline& pipeline, const DecoderChain& decoders, bool skip_special)
      : pipeline_(pipeline), skip_special_(skip_special) {
    DecodeStage* next = &sink_;
    for (auto it = decoders.rbegin(); it != decoders.rend(); ++it) {
      stages_.push_back((*it)->Start(next));
      next = stages_.back().get();
    }
    first_ = next;
  }

  void Push(int32_t id, std::string* out) override {
    const std::string_view content = pipeline_.DecodedText(id);
    if (content.empty() || (skip_special_ && pipeline_.IsSpecial(id))) return;
    sink_.out = out;
    first_->Text(content);
    first_->EndToken();
  }
  void Finish(std::string* out) override {
    sink_.out = out;
    first_->Finish();
  }

 private:
  struct Sink : DecodeStage {
    void Text(std::string_view fragment) override { out->append(fragment); }
    void EndToken() override {}
    void Finish() override {}
    std::string* out = nullptr;
  };

  const Pipeline& pipeline_;
  bool skip_special_;
  Sink sink_;
  std::vector<std::unique_ptr<DecodeStage>> stages_;  // last first
  DecodeStage* first_;
};

// Malformed bytes become U+FFFD, which moves what stands behind them.
CleanText Clean(std::string_view text, std::span<const TextSpan> plain) {
  CleanText clean;
  size_t at = 0;
  for (const TextSpan& span : plain) {
    clean.text += RepairUtf8(text.substr(at, span.begin - at));
    const size_t begin = clean.text.size();
    clean.text += RepairUtf8(text.substr(span.begin, span.end - span.begin));
    clean.plain.push_back({begin, clean.text.size()});
    at = span.end;
  }
  clean.text += RepairUtf8(text.substr(at));
  return clean;
}

// Counted from the beginning of the stretch.
std::vector<TextSpan> SpansWithin(const std::vector<TextSpan>& spans, const TextPart& stretch) {
  std::vector<TextSpan> within;
  for (const TextSpan& span : spans) {
    if (span.begin < stretch.begin || span.end > stretch.end) continue;
    within.push_back({span.begin - stretch.begin, span.end - stretch.begin});
  }
  return within;
}

}  // namespace

Pipeline::Pipeline(PipelineParts parts)
    : parts_(std::move(parts)),
      vocab_size_(1 + std::max(parts_.model->vocabulary().max_id(), parts_.added_tokens.max_id())) {
}

std::vector<int32_t> Pipeline::Encode(std::string_view text, const EncodeOptions& options) const {
  const CleanText clean = Clean(text, options.plain);
  const SkipSpecial skip{.everywhere = !options.parse_special, .spans = clean.plain};
  const std::unique_ptr<ModelSession> session = parts_.model->StartSession();
  std::vector<int32_t> ids;
  if (options.add_special_tokens) ids = parts_.post_processor.prefix;
  for (const TextPart& part : parts_.added_tokens.CutRaw(clean.text, skip)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      EncodeStretch(clean, part, skip.everywhere, session.get(), &ids);
    }
  }
  if (options.add_special_tokens) {
    const std::vector<int32_t>& suffix = parts_.post_processor.suffix;
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  }
  return ids;
}

// A stretch of text between added tokens that are looked for in the raw text.
void Pipeline::EncodeStretch(const CleanText& clean, const TextPart& stretch, bool skip_special,
                             ModelSession* session, std::vector<int32_t>* ids) const {
  const std::string_view raw =
      std::string_view(clean.text).substr(stretch.begin, stretch.end - stretch.begin);
  std::string text(raw);
  bool at_start = stretch.begin == 0;
  if (parts_.normalizer != nullptr) parts_.normalizer->Apply(&text, &at_start);
  const std::vector<TextSpan> plain = SpansWithin(clean.plain, stretch);
  const SkipSpecial skip{.everywhere = skip_special, .spans = plain};
  for (const TextPart& part : parts_.added_tokens.CutNormalized(text, raw, skip)) {
    if (part.id >= 0) {
      ids->push_back(part.id);
      continue;
    }
    Pieces pieces;
    pieces.text = text.substr(part.begin, part.end - part.begin);
    pieces.pieces.push_back({0, pieces.text.size(), at_start && part.begin == 0});
    if (parts_.pre_tokenizer != nullptr) parts_.pre_tokenizer->Apply(&pieces);
    for (const Piece& piece : pieces.pieces) session->Encode(pieces.View(piece), ids);
  }
}

std::string Pipeline::Decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  PipelineStream stream(*this, parts_.decoders, skip_special);
  for (const int32_t id : ids) stream.Push(id, &out);
  stream.Finish(&out);
  return out;
}

std::unique_ptr<DecodeStream> Pipeline::StartDecode(bool skip_special) const {
  return std::make_unique<PipelineStream>(*this, parts_.decoders, skip_special);
}

std::string Pipeline::TokenBytes(int32_t id) const {
  std::string token(DecodedText(id));
  for (const auto& decoder : parts_.decoders) token = decoder->TokenBytes(std::move(token));
  return token;
}

bool Pipeline::IsSpecial(int32_t id) const {
  const AddedToken* token = parts_.added_tokens.Find(id);
  return token != nullptr && token->special;
}

std::string_view Pipeline::TokenText(int32_t id) const {
  const AddedToken* token = parts_.added_tokens.Find(id);
  return token != nullptr ? std::string_view(token->content)
                          : parts_.model->vocabulary().Content(id);
}

std::string_view Pipeline::DecodedText(int32_t id) const {
  const AddedToken* token = parts_.added_tokens.Find(id);
  return token != nullptr ? std::string_view(token->decoded)
                          : parts_.model->vocabulary().Content(id);
}

int32_t Pipeline::TokenId(std::string_view content) const {
  const AddedToken* token = parts_.added_tokens.Find(content);
  return token != nullptr ? token->id : parts_.model->vocabulary().Id(content);
}

}  // namespace tok

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(std::string_view tokenizer_json,
                                                   std::string_view tokenizer_config_json) {
  TQ_ASSIGN_OR_RETURN(tok::PipelineParts parts,
                      tok::LoadPipelineParts(tokenizer_json, tokenizer_config_json));
  return std::unique_ptr<Tokenizer>(std::make_unique<tok::Pipeline>(std::move(parts)));
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const TokenizerFiles& files) {
  TQ_ASSIGN_OR_RETURN(tok::PipelineParts parts, tok::LoadPipelineParts(files));
  return std::unique_ptr<Tokenizer>(std::make_unique<tok::Pipeline>(std::move(parts)));
}

}  // namespace tq
