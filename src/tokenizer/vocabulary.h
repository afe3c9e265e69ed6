// Vocabulary: token contents and their ids, both ways. Filled once, then constant; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"
#include "base/status.h"
#include "tokenizer/flat_map.h"

namespace tq::tok {

class Vocabulary {
 public:
  // A JSON object content -> id. Errors: kCorrupt (not integers, out of range, ids that collide).
  static Result<Vocabulary> FromJson(const Json& json, const std::string& where);

  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // Errors: kCorrupt when the content or the id is taken.
  Status Add(std::string_view content, int32_t id, const std::string& where);
  int32_t Id(std::string_view content) const;  // -1 when there is none
  std::string_view Content(int32_t id) const;  // "" when there is none
  bool Contains(int32_t id) const;
  int32_t max_id() const { return max_id_; }                             // -1 when empty
  const std::deque<std::string>& contents() const { return contents_; }  // in order of Add

 private:
  std::deque<std::string> contents_;  // its strings never move: ids_ looks into them
  std::unordered_map<std::string_view, int32_t> ids_;
  FlatMap index_of_id_;
  int32_t max_id_ = -1;
};

// The ids of the tokens that stand for one byte (<0x00> .. <0xFF>), -1 where there is none.
void FindByteTokens(const Vocabulary& vocabulary, std::array<int32_t, 256>* ids);

// Reads an id. Errors: kCorrupt.
Result<int32_t> ParseTokenId(const Json& json, const std::string& where);

}  // namespace tq::tok
