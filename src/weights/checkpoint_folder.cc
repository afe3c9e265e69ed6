// A checkpoint in Hugging Face layout: model.safetensors or model*.safetensors, with or without
// model.safetensors.index.json, and the JSON and text documents beside them. Tensors of any
// published naming come out under their canonical names (naming/).
#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "weights/checkpoint_facts.h"
#include "weights/naming/canonical.h"
#include "weights/safetensors.h"

namespace tq {
namespace {

constexpr std::string_view kIndexName = "model.safetensors.index.json";

bool IsShardName(std::string_view name) {
  return name.starts_with("model") && name.ends_with(".safetensors");
}

bool IsDocumentName(std::string_view name) {
  if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")) return false;
  for (const std::string_view suffix : {".json", ".jinja", ".txt", ".model", ".tiktoken", ".py"}) {
    if (name.ends_with(suffix)) return true;
  }
  for (const std::string_view prefix : {"tokenizer", "LICENSE", "NOTICE", "README.md"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool IsModuleFolder(std::string_view name) {
  return name.size() > 2 && name[0] >= '0' && name[0] <= '9' && name[1] == '_';
}

class CheckpointFolder : public WeightSource {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}

  Status Open();

  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "safetensors"; }
  const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  std::vector<std::string> DocumentNames() const override { return documents_; }
  CheckpointFacts facts() const override { return facts_; }

  Result<std::string> ReadDocument(const std::string& name) const override {
    if (!std::binary_search(documents_.begin(), documents_.end(), name)) {
      return NotFound(path_ + ": no document \"" + name + "\"");
    }
    return ReadTextFile(FilePath(name));
  }

  std::shared_ptr<const void> Mapping() const override {
    return std::make_shared<const std::vector<std::shared_ptr<const MappedFile>>>(files_);
  }

  void DropPages(const SourceTensor& tensor) const override {
    for (const auto& file : files_) {
      const std::span<const std::byte> all = file->bytes();
      if (!tensor.bytes.empty() && tensor.bytes.data() >= all.data() &&
          tensor.bytes.data() < all.data() + all.size()) {
        file->DropPages(tensor.bytes);
      }
    }
  }

 private:
  // Tensor name -> shard, as the index says.
  using WeightMap = std::map<std::string, std::string, std::less<>>;

  std::string FilePath(std::string_view name) const { return path_ + '/' + std::string(name); }
  Result<WeightMap> ReadIndex() const;
  Result<std::set<std::string>> ShardsOfIndex(const WeightMap& map) const;
  Status AddShard(const std::string& name, const WeightMap* index);
  Status CheckIndex(const WeightMap& index) const;
  std::string ModelType() const;

  std::string path_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<SourceTensor> tensors_;
  CheckpointFacts facts_;
  WeightMap shard_of_;
  std::vector<std::string> documents_;
};

Result<CheckpointFolder::WeightMap> CheckpointFolder::ReadIndex() const {
  const std::string file = FilePath(kIndexName);
  TQ_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
  TQ_ASSIGN_OR_RETURN(const Json json, ParseJson(text, file, 16));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object()) {
    return Corrupt(file + ": expected an object \"weight_map\" of tensor names and files");
  }
  WeightMap out;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) {
      return Corrupt(file + ": tensor \"" + tensor + "\": expected a file name, found " +
                     shard.type_name());
    }
    out.emplace(tensor, shard.get<std::string>());
  }
  return out;
}

Result<std::set<std::string>> CheckpointFolder::ShardsOfIndex(const WeightMap& map) const {
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map) shards.insert(shard);
  for (const std::string& shard : shards) {
    if (shard.find_first_of("/\\") != std::string::npos || !shard.ends_with(".safetensors")) {
      return Corrupt(FilePath(kIndexName) + ": \"" + shard +
                     "\" is not the name of a .safetensors file of this folder");
    }
    if (!FileExists(FilePath(shard))) {
      return NotFound(FilePath(shard) + ": missing, but " + std::string(kIndexName) +
                      " names it (download the whole checkpoint)");
    }
  }
  return shards;
}

Status CheckpointFolder::AddShard(const std::string& name, const WeightMap* index) {
  TQ_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(FilePath(name)));
  TQ_ASSIGN_OR_RETURN(SafetensorsFile parsed, ParseSafetensors(file->bytes(), FilePath(name)));
  files_.push_back(std::move(file));
  for (SourceTensor& tensor : parsed.tensors) {
    const std::string where = FilePath(name) + ": tensor \"" + tensor.name + "\": ";
    const auto [it, inserted] = shard_of_.emplace(tensor.name, name);
    if (!inserted) return Corrupt(where + "already in " + it->second);
    if (index != nullptr) {
      const auto entry = index->find(tensor.name);
      if (entry == index->end()) return Corrupt(where + "not listed in " + std::string(kIndexName));
      if (entry->second != name) {
        return Corrupt(where + "but " + std::string(kIndexName) + " places it in " + entry->second);
      }
    }
    tensors_.push_back(std::move(tensor));
  }
  return Status::Ok();
}

Status CheckpointFolder::CheckIndex(const WeightMap& index) const {
  for (const auto& [tensor, shard] : index) {
    if (!shard_of_.contains(tensor)) {
      return Corrupt(FilePath(shard) + ": tensor \"" + tensor + "\" is missing, but " +
                     std::string(kIndexName) + " places it there");
    }
  }
  return Status::Ok();
}

Status CheckpointFolder::Open() {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  TQ_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path_));
  std::string gguf;
  for (const std::string& name : names) {
    if (IsDocumentName(name) && !IsDirectory(FilePath(name))) documents_.push_back(name);
    if (name.ends_with(".gguf")) gguf = name;
    // Of sentence-transformers: "1_Pooling/config.json".
    const std::string of_module = name + "/config.json";
    if (IsModuleFolder(name) && FileExists(FilePath(of_module))) documents_.push_back(of_module);
  }
  std::sort(documents_.begin(), documents_.end());

  if (std::find(names.begin(), names.end(), kIndexName) != names.end()) {
    TQ_ASSIGN_OR_RETURN(const WeightMap index, ReadIndex());
    TQ_ASSIGN_OR_RETURN(const std::set<std::string> shards, ShardsOfIndex(index));
    for (const std::string& shard : shards) TQ_RETURN_IF_ERROR(AddShard(shard, &index));
    TQ_RETURN_IF_ERROR(CheckIndex(index));
  } else {
    for (const std::string& name : names) {
      if (IsShardName(name)) TQ_RETURN_IF_ERROR(AddShard(name, nullptr));
    }
  }
  if (files_.empty()) {
    return NotFound(path_ + ": expected model.safetensors or model*.safetensors, found none" +
                    (gguf.empty() ? "" : " (give the path of " + gguf + " itself)"));
  }
  shard_of_.clear();
  std::sort(tensors_.begin(), tensors_.end(),
            [](const SourceTensor& a, const SourceTensor& b) { return a.name < b.name; });
  facts_.norms_include_one = NormsIncludeOne(tensors_);
  TQ_RETURN_IF_ERROR(CanonicalizeTensors(ModelType(), path_, tensors_));
  facts_.has_lm_head = Find("lm_head.weight") != nullptr;
  return Status::Ok();
}

// Empty when config.json does not tell: who needs the config reports what is wrong with it.
std::string CheckpointFolder::ModelType() const {
  const Result<std::string> text = ReadDocument("config.json");
  if (!text.ok()) return "";
  const Result<Json> config = ParseJson(*text, "config.json");
  if (!config.ok() || !config->is_object()) return "";
  const auto type = config->find("model_type");
  return type != config->end() && type->is_string() ? type->get<std::string>() : "";
}

}  // namespace

Result<std::unique_ptr<WeightSource>> OpenCheckpointFolder(const std::string& path) {
  auto folder = std::make_unique<CheckpointFolder>(path);
  TQ_RETURN_IF_ERROR(folder->Open());
  return std::unique_ptr<WeightSource>(std::move(folder));
}

}  // namespace tq
