// What tests of several models share: models that say a script, and a gate for their loads.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/server_for_test.h"

namespace tq::server {

// Holds loads until it is opened, and lets them fail.
class LoadGate {
 public:
  Status Pass() {
    std::unique_lock lock(mutex_);
    ++loading_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    return std::exchange(failure_, Status::Ok());
  }
  void WaitLoading(int loads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return loading_ >= loads; });
  }
  void Close() { Set(false, Status::Ok()); }
  void Open() { Set(true, Status::Ok()); }
  void OpenWith(Status failure) { Set(true, std::move(failure)); }

 private:
  void Set(bool open, Status failure) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    failure_ = std::move(failure);
    changed_.notify_all();
  }
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool open_ = true;
  int loading_ = 0;
  Status failure_;
};

inline ModelEntry Says(const std::string& name, const std::string& script, LoadGate* gate = nullptr,
                       const tq::test::ScriptModel::StepHook& hook = {},
                       const std::string& separator = "") {
  const auto text = std::make_shared<TextAssets>();
  LoadTestText(*text);
  if (!separator.empty()) {
    ChatDocuments documents;
    documents.chat_template_jinja = "{% for m in messages %}" + separator +
                                    "{{ '<|' + m.role + '|>' }}{{ m.content or '' }}{% endfor %}"
                                    "{% if add_generation_prompt %}<|assistant|>{% endif %}";
    documents.special_texts = {"<s>", "</s>", "<|user|>", "<|assistant|>"};
    auto chat = ChatPrompt::Load(documents);
    EXPECT_TRUE(chat.ok()) << chat.status().message();
    text->chat = std::move(chat).value();
  }
  ModelEntry entry = tq::test::MakeEntry(
      name, text,
      [script, hook] { return std::make_unique<tq::test::ScriptModel>(script, false, hook, 4096); },
      {});
  entry.card.memory_bytes = 1000;
  if (gate == nullptr) return entry;
  entry.load = [gate, load = entry.load]() -> Result<std::unique_ptr<LoadedModel>> {
    TQ_RETURN_IF_ERROR(gate->Pass());
    return load();
  };
  return entry;
}

inline TestServerOptions Two(LoadGate* gate = nullptr) {
  TestServerOptions options;
  options.models.push_back(Says("first", "I am first.", gate));
  options.models.push_back(Says("second", "I am second.", gate));
  options.models[1].card.aliases = {"zweites/modell"};
  return options;
}

inline std::string Ask(const std::string& model, const std::string& fields = "") {
  return HiWith("\"max_tokens\": 100, \"model\": \"" + model + "\"" + fields);
}

inline std::string Said(const tq::test::HttpReply& reply) {
  const Json json = reply.json();
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.status == 200 ? json["choices"][0]["message"]["content"].get<std::string>() : "";
}

inline int64_t Loads(TestServer& server, size_t model) {
  return server.service().pool().Stats()[model].loads;
}

inline bool ModelsBecomeIdle(TestServer& server) {
  for (int i = 0; i < 500; ++i) {
    bool idle = true;
    for (const PoolStats& stats : server.service().pool().Stats()) {
      idle = idle && stats.waiting == 0 && stats.leases == 0;
    }
    if (idle) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace tq::server
