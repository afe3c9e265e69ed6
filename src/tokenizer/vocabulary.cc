#include "tokenizer/vocabulary.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"

namespace tq::tok {

Result<int32_t> ParseTokenId(const Json& json, const std::string& where) {
  const bool fits = json.is_number_unsigned()
                        ? json.get<uint64_t>() <= static_cast<uint64_t>(kMaxTokenId)
                        : json.is_number_integer() && json.get<int64_t>() >= 0;
  if (!fits) {
    const std::string found = json.is_number() ? json.dump() : std::string(json.type_name());
    return Corrupt(where + ": expected an id in 0.." + std::to_string(kMaxTokenId) + ", found " +
                   found);
  }
  return json.get<int32_t>();
}

Result<Vocabulary> Vocabulary::FromJson(const Json& json, const std::string& where) {
  if (!json.is_object()) {
    return Corrupt(where + ": expected an object of ids, found " + json.type_name());
  }
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(json.size());
  vocabulary.index_of_id_.Reserve(json.size());
  for (const auto& [content, id_json] : json.items()) {
    const Result<int32_t> id = ParseTokenId(id_json, where);
    if (!id.ok()) {
      return Status(id.status().code(), id.status().message() + " for " + Quoted(content));
    }
    TQ_RETURN_IF_ERROR(vocabulary.Add(content, *id, where));
  }
  return vocabulary;
}

Status Vocabulary::Add(std::string_view content, int32_t id, const std::string& where) {
  if (ids_.contains(content)) return Corrupt(where + ": " + Quoted(content) + " appears twice");
  if (Contains(id)) {
    return Corrupt(where + ": id " + std::to_string(id) + " belongs to both " +
                   Quoted(Content(id)) + " and " + Quoted(content));
  }
  contents_.emplace_back(content);
  ids_.emplace(contents_.back(), id);
  index_of_id_.Set(static_cast<uint64_t>(id), static_cast<uint32_t>(contents_.size() - 1));
  max_id_ = std::max(max_id_, id);
  return Status::Ok();
}

int32_t Vocabulary::Id(std::string_view content) const {
  const auto it = ids_.find(content);
  return it == ids_.end() ? -1 : it->second;
}

std::string_view Vocabulary::Content(int32_t id) const {
  const uint32_t index = id < 0 ? FlatMap::kNone : index_of_id_.Get(static_cast<uint64_t>(id));
  return index == FlatMap::kNone ? std::string_view() : std::string_view(contents_[index]);
}

bool Vocabulary::Contains(int32_t id) const {
  return id >= 0 && index_of_id_.Get(static_cast<uint64_t>(id)) != FlatMap::kNone;
}

void FindByteTokens(const Vocabulary& vocabulary, std::array<int32_t, 256>* ids) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    (*ids)[byte] = vocabulary.Id(std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + '>');
  }
}

}  // namespace tq::tok
