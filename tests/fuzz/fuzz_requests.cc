// Bodies of requests: any bytes sent to any endpoint must be answered, and what the engine is asked
// is valid or refused. Input: one byte that chooses the endpoint, then the body.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "server/service.h"
#include "support/byte_tokenizer.h"
#include "support/model_entry.h"
#include "support/script_model.h"

namespace {

using namespace tq;          // NOLINT
using namespace tq::server;  // NOLINT

// An exchange without a connection.
class DryExchange final : public Exchange {
 public:
  DryExchange(std::string path, std::string body) {
    request_.method = "POST";
    request_.path = std::move(path);
    request_.body = std::move(body);
  }
  const HttpRequest& request() const override { return request_; }
  void AddHeader(std::string, std::string) override {}
  void Respond(HttpResponse response) override {
    if (answered_ || response.status < 200 || response.status == 500) std::abort();
    answered_ = true;
  }
  void StartStream(HttpResponse) override { answered_ = true; }
  void Write(std::string) override {}
  bool writable() const override { return true; }
  void EndStream() override {}
  void Abort() override {}
  void OnClosed(std::function<void()> callback) override { on_closed_ = std::move(callback); }
  void OnWritable(std::function<void()>) override {}
  void After(std::chrono::milliseconds, std::function<void()>) override {}
  void Post(std::function<void()>) override {}
  // The client leaves. True when it had an answer, or one was on its way.
  bool Leave() {
    if (on_closed_ == nullptr) return answered_;
    std::exchange(on_closed_, nullptr)();
    return true;
  }

 private:
  HttpRequest request_;
  std::function<void()> on_closed_;
  bool answered_ = false;
};

struct Fixture {
  Fixture() {
    const auto text = std::make_shared<TextAssets>();
    auto tokenizer = Tokenizer::Load(tq::test::ByteTokenizerJson(), "");
    text->tokenizer = std::move(tokenizer).value();
    ChatDocuments documents;
    documents.chat_template_jinja =
        "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}<|assistant|><tool_call>";
    auto chat = ChatPrompt::Load(documents);
    text->chat = std::move(chat).value();
    std::vector<ModelEntry> models;
    models.push_back(tq::test::MakeEntry(
        "m", text, std::make_unique<tq::test::ScriptModel>("x", true, nullptr, 2048),
        {.max_queue = 4096}));
    auto created = Service::Create(std::move(models), {}, ServiceOptions{}, ServerLog());
    service = std::move(created).value();
    if (!service->pool().Get(0).ok()) std::abort();
  }
  std::unique_ptr<Service> service;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Fixture fixture;
  constexpr std::array<const char*, 7> kPaths = {
      "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/messages/count_tokens",
      "/v1/responses",        "/tokenize",       "/detokenize"};
  if (size == 0) return 0;
  const auto exchange =
      std::make_shared<DryExchange>(kPaths[data[0] % kPaths.size()],
                                    std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  fixture.service->Handle(exchange);
  if (!exchange->Leave()) std::abort();
  return 0;
}
