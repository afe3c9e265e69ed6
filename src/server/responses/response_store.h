// ResponseStore: answers of /v1/responses that clients refer to later, and those that are on their
// way. In memory; the least used give way. Thread: any.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/json.h"
#include "base/status.h"

namespace tq::server {

struct StoredResponse {
  std::string response;  // JSON text of the object
  std::string items;     // JSON text: the conversation so far, the answer's items included
  std::string input;     // JSON text: the items that the request brought
};

class ResponseStore {
 public:
  explicit ResponseStore(size_t max_responses);

  void Put(const std::string& id, StoredResponse response);
  // Null: not there (any more).
  std::shared_ptr<const StoredResponse> Get(const std::string& id);
  bool Remove(const std::string& id);

  // While an answer is on its way: how to cancel it.
  void Begin(const std::string& id, std::function<void()> cancel);
  void End(const std::string& id);
  // False: no such answer is on its way.
  bool Cancel(const std::string& id);

 private:
  struct Entry {
    std::string id;
    std::shared_ptr<const StoredResponse> response;
    size_t bytes;
  };
  void Erase(std::list<Entry>::iterator entry);

  const size_t max_responses_;
  std::mutex mutex_;          // guards all below
  std::list<Entry> entries_;  // the least used first
  std::map<std::string, std::list<Entry>::iterator> by_id_;
  std::map<std::string, std::function<void()>> running_;
  size_t bytes_ = 0;
};

}  // namespace tq::server
