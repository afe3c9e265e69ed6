#include "chat/template/value.h"

#include <algorithm>

#include "chat/template/compare.h"
#include "chat/template/runtime.h"

namespace tq::jinja {

std::string_view Value::text() const { return As<StringObject>().text; }
const std::vector<Value>& Value::items() const { return As<ListObject>().items; }
const DictObject& Value::dict() const { return As<DictObject>(); }

uint64_t HashText(std::string_view text) { return std::hash<std::string_view>{}(text); }

namespace {
constexpr size_t kLinearEntries = 8;
}

int64_t DictObject::FindIndex(const Value& key, uint64_t hash) const {
  if (table.empty()) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (hashes[i] == hash && KeysEqual(entries[i].first, key)) return static_cast<int64_t>(i);
    }
    return -1;
  }
  const size_t mask = table.size() - 1;
  for (size_t slot = hash & mask; table[slot] >= 0; slot = (slot + 1) & mask) {
    const auto i = static_cast<size_t>(table[slot]);
    if (hashes[i] == hash && KeysEqual(entries[i].first, key)) return static_cast<int64_t>(i);
  }
  return -1;
}

const Value* DictObject::Find(const Value& key, uint64_t hash) const {
  const int64_t i = FindIndex(key, hash);
  return i < 0 ? nullptr : &entries[static_cast<size_t>(i)].second;
}

const Value* DictObject::Find(std::string_view key) const {
  const auto matches = [key](const Value& other) {
    return other.IsString() && other.text() == key;
  };
  const uint64_t hash = HashText(key);
  if (table.empty()) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (hashes[i] == hash && matches(entries[i].first)) return &entries[i].second;
    }
    return nullptr;
  }
  const size_t mask = table.size() - 1;
  for (size_t slot = hash & mask; table[slot] >= 0; slot = (slot + 1) & mask) {
    const auto i = static_cast<size_t>(table[slot]);
    if (hashes[i] == hash && matches(entries[i].first)) return &entries[i].second;
  }
  return nullptr;
}

void DictObject::Set(Value key, uint64_t hash, Value value) {
  const int64_t i = FindIndex(key, hash);
  if (i >= 0) {
    entries[static_cast<size_t>(i)].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  hashes.push_back(hash);
  if (entries.size() <= kLinearEntries) return;
  if (entries.size() * 2 > table.size()) {
    Rebuild();
    return;
  }
  const size_t mask = table.size() - 1;
  size_t slot = hash & mask;
  while (table[slot] >= 0) slot = (slot + 1) & mask;
  table[slot] = static_cast<int32_t>(entries.size() - 1);
}

void DictObject::Rebuild() {
  size_t size = 4 * kLinearEntries;
  while (size < entries.size() * 4) size *= 2;
  table.assign(size, -1);
  for (size_t i = 0; i < entries.size(); ++i) {
    size_t slot = hashes[i] & (size - 1);
    while (table[slot] >= 0) slot = (slot + 1) & (size - 1);
    table[slot] = static_cast<int32_t>(i);
  }
}

Result<bool> LoopObject::Pull(Runtime& rt, Value* item) {
  if (source == nullptr) return false;
  return source->Next(rt, item);
}

Result<bool> LoopObject::Advance(Runtime& rt) {
  Value next;
  if (!ahead.empty()) {
    next = std::move(ahead.back());
    ahead.pop_back();
  } else {
    TQ_ASSIGN_OR_RETURN(const bool more, Pull(rt, &next));
    if (!more) return false;
  }
  ++index0;
  previous = std::move(current);
  current = std::move(next);
  return true;
}

Result<Value> LoopObject::Peek(Runtime& rt) {
  if (ahead.empty()) {
    Value next;
    TQ_ASSIGN_OR_RETURN(const bool more, Pull(rt, &next));
    if (!more) return Value();
    ahead.push_back(std::move(next));
  }
  return ahead.back();
}

Result<int64_t> LoopObject::Length(Runtime& rt) {
  if (length >= 0) return length;
  std::vector<Value> rest;
  Value item;
  while (true) {
    TQ_ASSIGN_OR_RETURN(const bool more, Pull(rt, &item));
    if (!more) break;
    rest.push_back(std::move(item));
  }
  length = static_cast<int64_t>(rest.size() + ahead.size()) + index0 + 1;
  // The item already looked at comes first.
  std::reverse(rest.begin(), rest.end());
  rest.insert(rest.end(), ahead.begin(), ahead.end());
  ahead = std::move(rest);
  return length;
}

void LoopObject::Close() {
  source = nullptr;
  ahead.clear();
  recurse = nullptr;
  last_changed = Value();
}

}  // namespace tq::jinja
