// TokenModel: piece of text -> ids. One file per kind; tokenizer_list.inc is the list. The model is
// immutable and used from any thread; what a call needs to write lives in its ModelSession.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "tokenizer/vocabulary.h"

namespace tq::tok {

// Scratch of one Encode call: buffers and the words seen so far. One thread.
class ModelSession {
 public:
  virtual ~ModelSession() = default;
  // Appends the ids of a piece that is not empty.
  virtual void Encode(std::string_view piece, std::vector<int32_t>* ids) = 0;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // The session must not outlive the model.
  virtual std::unique_ptr<ModelSession> StartSession() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
};

// json: the "model" object. Errors: kCorrupt, kUnsupported naming the kind.
Result<std::unique_ptr<TokenModel>> MakeTokenModel(const Json& json, const std::string& where);

}  // namespace tq::tok
