#include "server/turn_store.h"

#include <iterator>

// The hash alone is used, inlined.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sampling/random.h"

namespace tq::server {
namespace {

constexpr size_t kMaxBytes = size_t{128} << 20;

size_t BytesOf(const StoredTurn& turn) {
  return sizeof(turn) + turn.turn.text.size() + turn.turn.opening.size() + turn.reasoning.size() +
         turn.ids.size() * sizeof(int32_t);
}

}  // namespace

TurnStore::TurnStore(size_t max_turns) : max_turns_(max_turns), seed_(FreshSeed()) {}

TurnStore::Key TurnStore::Hash(Key before, const std::string& text) const {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(text.data(), text.size(), seed_ ^ before.first);
  return {hash.low64 ^ before.second, hash.high64};
}

TurnStore::Key TurnStore::Extend(Key history, const ChatMessage& message) const {
  const std::string head = std::string(RoleName(message.role)) + '\n' + message.tool_call_id + '\n';
  return Hash(history, head + TurnKey(message, false));
}

std::vector<TurnStore::Key> TurnStore::AnswerKeys(Key history, const ChatMessage& answer) const {
  std::vector<Key> keys{Hash(history, "answer\n" + TurnKey(answer, false))};
  if (!answer.reasoning.empty()) {
    keys.push_back(Hash(history, "thought\n" + TurnKey(answer, true)));
  }
  return keys;
}

void TurnStore::Put(const std::vector<ChatMessage>& history, const ChatMessage& answer,
                    StoredTurn turn) {
  if (max_turns_ == 0) return;
  Key key{};
  for (const ChatMessage& message : history) key = Extend(key, message);
  Entry entry{.keys = AnswerKeys(key, answer), .turn = {}, .bytes = BytesOf(turn)};
  entry.turn = std::make_shared<const StoredTurn>(std::move(turn));
  const std::lock_guard lock(mutex_);
  bytes_ += entry.bytes;
  entries_.push_back(std::move(entry));
  const auto newest = std::prev(entries_.end());
  for (const Key& k : newest->keys) by_key_[k] = newest;
  while (entries_.size() > max_turns_ || (bytes_ > kMaxBytes && entries_.size() > 1)) {
    RemoveOldest();
  }
}

void TurnStore::RemoveOldest() {
  const auto oldest = entries_.begin();
  for (const Key& key : oldest->keys) {
    const auto found = by_key_.find(key);
    // A newer answer of the same words may have taken the key over.
    if (found != by_key_.end() && found->second == oldest) by_key_.erase(found);
  }
  bytes_ -= oldest->bytes;
  entries_.pop_front();
}

std::vector<std::shared_ptr<const StoredTurn>> TurnStore::Restore(ChatInput& input) {
  std::vector<std::shared_ptr<const StoredTurn>> restored;
  const std::lock_guard lock(mutex_);
  Key key{};
  for (ChatMessage& message : input.messages) {
    const Key history = key;
    key = Extend(key, message);
    if (message.role != ChatRole::kAssistant) continue;
    const auto found = by_key_.find(AnswerKeys(history, message).back());
    if (found == by_key_.end()) continue;
    entries_.splice(entries_.end(), entries_, found->second);
    const StoredTurn& turn = *found->second->turn;
    message.reasoning = turn.reasoning;
    message.generated = turn.turn;
    message.generated->tag = static_cast<int64_t>(restored.size());
    restored.push_back(found->second->turn);
  }
  return restored;
}

}  // namespace tq::server
