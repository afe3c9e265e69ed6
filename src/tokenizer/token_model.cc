#include "tokenizer/token_model.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "tokenizer/component.h"

namespace tq::tok {

using TokenModelPtr = std::unique_ptr<TokenModel>;

#define TOKENIZER_MODEL(type, make) Result<TokenModelPtr> make(const Json&, const std::string&);
#include "tokenizer/tokenizer_list.inc"
#undef TOKENIZER_MODEL

namespace {

constexpr Factory<TokenModelPtr> kFactories[] = {
#define TOKENIZER_MODEL(type, make) {type, &make},
#include "tokenizer/tokenizer_list.inc"
#undef TOKENIZER_MODEL
};

}  // namespace

Result<TokenModelPtr> MakeTokenModel(const Json& json, const std::string& where) {
  // Old files leave the type out; only BPE has merges.
  if (json.is_object() && !json.contains("type") && json.contains("merges")) {
    return MakeBpe(json, where);
  }
  return MakeComponent<TokenModelPtr>(kFactories, json, where);
}

}  // namespace tq::tok
