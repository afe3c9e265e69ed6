// What the server's tests share: a whole server in this process, with a model that says a script.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server/service.h"
#include "server/transport/http_server.h"
#include "support/byte_tokenizer.h"
#include "support/http_client.h"
#include "support/model_entry.h"
#include "support/script_model.h"

namespace tq::server {

// A template with thoughts and calls, over the byte tokenizer.
inline constexpr const char* kTestTemplate =
    "{% if tools %}<|system|>tools{% for t in tools %}{{ t.function.name }} {% endfor %}"
    "<tool_call>{% endif %}{% for m in messages %}{{ '<|' + m.role + '|>' }}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>{\"name\": "
    "\"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

struct TestServerOptions {
  std::string script = "Hello, world.";
  bool endless = false;
  tq::test::ScriptModel::StepHook hook = {};
  int64_t max_context = 4096;
  EngineOptions engine = {};
  ServiceOptions service = {};
  HttpServerOptions http = {};
  // In place of the byte tokenizer, kTestTemplate and the script.
  std::function<void(TextAssets&)> load_text = {};
  std::function<std::unique_ptr<StepModel>(const TextAssets&)> make_model = {};
  // In place of one model "test-model"; none of these is loaded yet.
  std::vector<ModelEntry> models = {};
  PoolOptions pool = {};
};

inline void LoadTestText(TextAssets& text) {
  auto tokenizer = Tokenizer::Load(tq::test::ByteTokenizerJson(), "");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  text.tokenizer = std::move(tokenizer).value();
  ChatDocuments documents;
  documents.chat_template_jinja = kTestTemplate;
  documents.special_texts = {"<s>", "</s>", "<|user|>", "<|assistant|>"};
  auto chat = ChatPrompt::Load(documents);
  EXPECT_TRUE(chat.ok()) << chat.status().message();
  text.chat = std::move(chat).value();
  text.end_ids = {tq::test::ScriptModel::kEnd};
}

class TestServer {
 public:
  explicit TestServer(TestServerOptions options) {
    const bool is_one = options.models.empty();
    if (is_one) AddModel(options);
    auto service = Service::Create(std::move(options.models), std::move(options.pool),
                                   options.service, ServerLog());
    EXPECT_TRUE(service.ok()) << service.status().message();
    service_ = std::move(service).value();
    if (is_one) {
      auto lease = service_->pool().Get(0);
      EXPECT_TRUE(lease.ok()) << lease.status().message();
      engine_ = lease->get();
    }
    options.http.port = 0;
    options.http.refuse = [](int status, std::string_view message) {
      return ErrorResponse(ApiStyle::kOpenAi,
                           {status, "invalid_request_error", "", "", std::string(message)}, "");
    };
    auto http = HttpServer::Listen(options.http, [this](const std::shared_ptr<Exchange>& exchange) {
      service_->Handle(exchange);
    });
    EXPECT_TRUE(http.ok()) << http.status().message();
    http_ = std::move(http).value();
    service_->SetConnectionCounter([this] { return http_->num_connections(); });
  }

  int port() const { return http_->port(); }
  HttpServer& http() { return *http_; }
  Service& service() { return *service_; }
  Engine& engine() { return *engine_; }  // of "test-model"
  tq::test::HttpReply Post(const std::string& path, const std::string& body,
                           const std::vector<std::string>& headers = {}) const {
    return tq::test::Fetch(port(), "POST", path, body, headers);
  }
  tq::test::HttpReply Get(const std::string& path,
                          const std::vector<std::string>& headers = {}) const {
    return tq::test::Fetch(port(), "GET", path, "", headers);
  }

 private:
  static void AddModel(TestServerOptions& options) {
    const auto text = std::make_shared<TextAssets>();
    options.load_text ? options.load_text(*text) : LoadTestText(*text);
    std::unique_ptr<StepModel> model =
        options.make_model
            ? options.make_model(*text)
            : std::make_unique<tq::test::ScriptModel>(options.script, options.endless,
                                                      std::move(options.hook), options.max_context);
    options.models.push_back(
        tq::test::MakeEntry("test-model", text, std::move(model), options.engine));
  }

  Engine* engine_ = nullptr;  // its model stays loaded
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> http_;  // last: ends before what it uses
};

inline const char* kHi = R"({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100})";

// kHi with more fields: `, "stream": true`.
inline std::string HiWith(const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": "Hi"}], )" + fields + "}";
}

// The data of all events, but for "[DONE]".
inline std::vector<Json> EventData(const tq::test::HttpReply& reply) {
  std::vector<Json> data;
  for (const auto& [name, text] : tq::test::SseEvents(reply.body)) {
    if (text == "[DONE]") continue;
    const auto json = ParseJson(text, "event");
    EXPECT_TRUE(json.ok()) << text;
    if (json.ok()) data.push_back(*json);
  }
  return data;
}

inline std::vector<std::string> EventNames(const tq::test::HttpReply& reply) {
  std::vector<std::string> names;
  for (const auto& [name, text] : tq::test::SseEvents(reply.body)) names.push_back(name);
  return names;
}

}  // namespace tq::server
