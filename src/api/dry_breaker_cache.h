// The ids of DRY sequence breakers, kept: finding them looks at every token of a vocabulary. One
// for each tokenizer. Thread: any.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tq {

class DryBreakerCache {
 public:
  static constexpr size_t kMaxLists = 16;

  // DryBreakerIds(tokenizer, texts). Requires: the same tokenizer in every call.
  std::vector<std::vector<int32_t>> Ids(const Tokenizer& tokenizer,
                                        const std::vector<std::string>& texts);
  size_t num_lists() const;

 private:
  struct Entry {
    std::vector<std::string> texts;
    std::vector<std::vector<int32_t>> ids;
  };
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the last one used first
};

}  // namespace tq
