// TurnStore: answers as they were generated. Clients send them back as messages, spaced and cut
// their own way; with the generated text in their place the next prompt begins as the last one did,
// and the prefix cache has all of it. Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "chat/messages.h"

namespace tq::server {

struct StoredTurn {
  GeneratedTurn turn;
  std::string reasoning;  // thoughts of the answer: clients may not send them back
  std::vector<int32_t> ids;
};

class TurnStore {
 public:
  explicit TurnStore(size_t max_turns);

  // history: what was answered; answer: as the client saw it. The oldest turns give way.
  void Put(const std::vector<ChatMessage>& history, const ChatMessage& answer, StoredTurn turn);
  // Gives messages of the input that are stored answers to what stands before them their
  // `generated`. A tag is an index into the result.
  std::vector<std::shared_ptr<const StoredTurn>> Restore(ChatInput& input);

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  struct Entry {
    std::vector<Key> keys;
    std::shared_ptr<const StoredTurn> turn;
    size_t bytes;
  };
  Key Hash(Key before, const std::string& text) const;
  // Of a conversation that ends with `message`.
  Key Extend(Key history, const ChatMessage& message) const;
  std::vector<Key> AnswerKeys(Key history, const ChatMessage& answer) const;
  void RemoveOldest();

  const size_t max_turns_;
  const uint64_t seed_;       // so that nobody can make two keys equal
  std::mutex mutex_;          // guards the next three
  std::list<Entry> entries_;  // the oldest first
  std::map<Key, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
};

}  // namespace tq::server
