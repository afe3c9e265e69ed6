// A .gguf file, or the set of its splits, as a WeightSource in Hugging Face terms.
#include <cmath>
#include <cstdio>
#include <mutex>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "weights/gguf_documents.h"
#include "weights/gguf_translate.h"
#include "weights/quote.h"

namespace tq {
namespace {

constexpr std::string_view kConfig = "config.json";

class GgufSource : public WeightSource {
 public:
  explicit GgufSource(std::string path) : path_(std::move(path)) {}

  Status Open();

  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "gguf"; }
  const std::vector<SourceTensor>& tensors() const override {
    std::call_once(filled_, [this] {
      for (const GgufChangedTensor& tensor : tensors_.changed) {
        tensor.Fill();
        DropRange(tensor.stored.bytes);
      }
    });
    return tensors_.tensors;
  }
  Result<std::string> ReadDocument(const std::string& name) const override;
  std::vector<std::string> DocumentNames() const override {
    return {std::string(kConfig), "generation_config.json", "tokenizer.json",
            "tokenizer_config.json"};
  }
  void DropPages(const SourceTensor& tensor) const override { DropRange(tensor.bytes); }

 private:
  struct File {
    std::shared_ptr<const MappedFile> mapped;
    GgufFile parsed;
  };

  void DropRange(std::span<const std::byte> bytes) const;
  Status OpenFiles();
  Status OpenSplits(int64_t count);
  Status CheckSplit(const File& file, int64_t number, int64_t count) const;
  Status CheckSplitTensors() const;
  Status CollectTensors(GgufTensorMap& all) const;
  Status ReadModel(GgufTensorMap& all, GgufKeys& keys, GgufModel& model) const;
  const GgufFile& Main() const { return files_.front().parsed; }

  std::string path_;
  std::vector<File> files_;
  GgufTensors tensors_;
  std::string config_;
  mutable std::once_flag filled_;
};

void GgufSource::DropRange(std::span<const std::byte> bytes) const {
  for (const File& file : files_) {
    const std::span<const std::byte> all = file.mapped->bytes();
    if (!bytes.empty() && bytes.data() >= all.data() && bytes.data() < all.data() + all.size()) {
      file.mapped->DropPages(bytes);
    }
  }
}

// An optional integer of a split header, -1 when it is missing.
Result<int64_t> SplitInt(const GgufFile& file, const std::string& where, std::string_view key) {
  const auto it = file.keys.find(key);
  if (it == file.keys.end()) return int64_t{-1};
  const std::optional<int64_t> value = it->second.is_array ? std::nullopt : it->second.IntAt(0);
  if (!value || *value < 0) {
    return Corrupt(where + ": key " + Quoted(key) + ": expected a count, found " +
                   it->second.TypeName());
  }
  return *value;
}

// "-00002-of-00003.gguf"
std::string SplitSuffix(int64_t number, int64_t count) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "-%05lld-of-%05lld.gguf",
                static_cast<long long>(number + 1), static_cast<long long>(count));
  return buffer;
}

Status GgufSource::OpenFiles() {
  File file;
  TQ_ASSIGN_OR_RETURN(file.mapped, MappedFile::Open(path_));
  TQ_ASSIGN_OR_RETURN(file.parsed, ParseGguf(file.mapped->bytes(), path_));
  TQ_ASSIGN_OR_RETURN(const int64_t count, SplitInt(file.parsed, path_, "split.count"));
  if (count > 1) return OpenSplits(count);
  files_.push_back(std::move(file));
  return Status::Ok();
}

// Any of the set may have been named; the first one carries the model's keys.
Status GgufSource::OpenSplits(int64_t count) {
  constexpr int64_t kMaxSplits = 99999;
  const size_t suffix_size = SplitSuffix(0, 1).size();
  const std::string prefix = path_.substr(0, path_.size() - std::min(path_.size(), suffix_size));
  const std::string total = SplitSuffix(0, count).substr(sizeof("-00001") - 1);
  if (count > kMaxSplits || !path_.ends_with(total)) {
    return Corrupt(path_ + ": key \"split.count\" says " + std::to_string(count) +
                   " files, but the name is not NAME-0000N-of-0000M.gguf (rename it back)");
  }
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = prefix + SplitSuffix(i, count);
    if (!FileExists(name)) {
      return NotFound(name + ": missing, one of the " + std::to_string(count) +
                      " files of this model");
    }
    File file;
    TQ_ASSIGN_OR_RETURN(file.mapped, MappedFile::Open(name));
    TQ_ASSIGN_OR_RETURN(file.parsed, ParseGguf(file.mapped->bytes(), name));
    TQ_RETURN_IF_ERROR(CheckSplit(file, i, count));
    files_.push_back(std::move(file));
  }
  path_ = files_.front().mapped->path();
  return CheckSplitTensors();
}

Status GgufSource::CheckSplit(const File& file, int64_t number, int64_t count) const {
  const std::string& name = file.mapped->path();
  TQ_ASSIGN_OR_RETURN(const int64_t found, SplitInt(file.parsed, name, "split.no"));
  TQ_ASSIGN_OR_RETURN(const int64_t total, SplitInt(file.parsed, name, "split.count"));
  if (found != number || total != count) {
    return Corrupt(name + ": expected split.no " + std::to_string(number) + " and split.count " +
                   std::to_string(count) + ", found " + std::to_string(found) + " and " +
                   std::to_string(total) + " (file renamed?)");
  }
  return Status::Ok();
}

Status GgufSource::CheckSplitTensors() const {
  TQ_ASSIGN_OR_RETURN(const int64_t expected, SplitInt(Main(), path_, "split.tensors.count"));
  size_t found = 0;
  for (const File& file : files_) found += file.parsed.tensors.size();
  if (expected >= 0 && static_cast<size_t>(expected) != found) {
    return Corrupt(path_ + ": key \"split.tensors.count\" says " + std::to_string(expected) +
                   " tensors, the files hold " + std::to_string(found));
  }
  return Status::Ok();
}

Status GgufSource::CollectTensors(GgufTensorMap& all) const {
  for (const File& file : files_) {
    for (const GgufTensorInfo& info : file.parsed.tensors) {
      if (!all.emplace(info.name, info).second) {
        return Corrupt(file.mapped->path() + ": tensor " + Quoted(info.name) +
                       " is in another file of this model too");
      }
    }
  }
  return Status::Ok();
}

// Number of rows of the embedding; llama.cpp's own writers pad the list of tokens to it.
int64_t VocabSize(GgufKeys& keys, const GgufVocab& vocab, const GgufTensorMap& all) {
  constexpr int64_t kMaxVocab = int64_t{1} << 31;
  const auto num_tokens = static_cast<int64_t>(vocab.tokens.size());
  const std::string key = keys.Arch("vocab_size");
  int64_t size = keys.Int(key, num_tokens, 1, kMaxVocab);
  const auto embedding = all.find("token_embd.weight");
  if (embedding != all.end() && !embedding->second.shape.empty() &&
      embedding->second.shape[0] == num_tokens) {
    size = num_tokens;
  }
  if (num_tokens > size) {
    keys.Bad(key, std::to_string(size) + " is less than the " + std::to_string(num_tokens) +
                      " tokens of tokenizer.ggml.tokens");
  }
  return size;
}

Status GgufSource::ReadModel(GgufTensorMap& all, GgufKeys& keys, GgufModel& model) const {
  TQ_ASSIGN_OR_RETURN(const GgufVocab vocab, ReadGgufVocab(keys));
  model.vocab = VocabSize(keys, vocab, all);
  if (vocab.bos) model.config["bos_token_id"] = *vocab.bos;
  if (vocab.eos) model.config["eos_token_id"] = *vocab.eos;
  if (vocab.padding) model.config["pad_token_id"] = *vocab.padding;
  ReadCommonConfig(keys, model);
  TQ_RETURN_IF_ERROR(keys.status());

  auto factors = all.extract("rope_freqs.weight");
  if (factors.empty()) return Status::Ok();
  const GgufTensorInfo& info = factors.mapped();
  TQ_ASSIGN_OR_RETURN(model.rope_factors, ReadGgufFloats(info, path_));
  if (static_cast<int64_t>(model.rope_factors.size()) != model.head_dim / 2) {
    return Corrupt(path_ + ": tensor \"rope_freqs.weight\": expected shape [" +
                   std::to_string(model.head_dim / 2) + "], found " + ShapeString(info.shape));
  }
  for (const float factor : model.rope_factors) {
    if (!std::isfinite(factor) || factor <= 0.0f) {
      return Corrupt(path_ + ": tensor \"rope_freqs.weight\": expected factors above 0");
    }
  }
  return Status::Ok();
}

Status GgufSource::Open() {
  TQ_RETURN_IF_ERROR(OpenFiles());
  GgufKeys keys(Main(), path_);
  TQ_RETURN_IF_ERROR(keys.status());
  const std::optional<GgufArch> arch = FindGgufArch(keys.architecture());
  if (!arch) {
    return Unsupported(path_ + ": architecture " + Quoted(keys.architecture()) +
                       " is not supported (known: " + KnownGgufArchs() + ")");
  }
  GgufTensorMap all;
  TQ_RETURN_IF_ERROR(CollectTensors(all));
  GgufModel model;
  TQ_RETURN_IF_ERROR(ReadModel(all, keys, model));
  arch->read_config(keys, model);
  TQ_RETURN_IF_ERROR(keys.status());
  if (const auto unread = keys.UnreadArchKeys(); !unread.empty()) {
    return Unsupported(path_ + ": key " + Quoted(unread.front()) +
                       " is unknown and may change the results");
  }
  TQ_ASSIGN_OR_RETURN(tensors_, TranslateGgufTensors(std::move(all), *arch, model, path_));
  TQ_ASSIGN_OR_RETURN(config_, DumpDocument(model.config, path_ + ": config.json"));
  return Status::Ok();
}

Result<std::string> GgufSource::ReadDocument(const std::string& name) const {
  if (name == kConfig) return config_;
  if (name == "generation_config.json") return GgufGenerationConfigJson(Main(), path_);
  if (name == "tokenizer.json") return GgufTokenizerJson(Main(), path_);
  if (name == "tokenizer_config.json") return GgufTokenizerConfigJson(Main(), path_);
  return NotFound(path_ + ": no document " + Quoted(name));
}

}  // namespace

Result<std::unique_ptr<WeightSource>> OpenGguf(const std::string& path) {
  auto source = std::make_unique<GgufSource>(path);
  TQ_RETURN_IF_ERROR(source->Open());
  return std::unique_ptr<WeightSource>(std::move(source));
}

}  // namespace tq
