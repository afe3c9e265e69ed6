#include "server/openai/completion_writer.h"

#include <ctime>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/ids.h"
#include "server/logprobs.h"
#include "server/openai/usage.h"
#include "server/sse.h"

namespace tq::server {
namespace {

class CompletionWriter final : public AnswerWriter {
 public:
  CompletionWriter(const Call& call, CompletionForm form)
      : call_(call),
        form_(std::move(form)),
        answers_(form_.num_prompts * form_.answers_per_prompt) {}

  void Begin() override {
    if (form_.stream) call_.StartEvents();
    if (form_.echo.empty()) return;
    for (size_t i = 0; i < answers_.size(); ++i) {
      const std::string& prompt = form_.echo[i / form_.answers_per_prompt];
      answers_[i].logprobs.Skip(prompt);
      Show(i, prompt);
    }
  }
  void Add(size_t answer, const AnswerEvent& event) override {
    if (form_.logprobs) {
      answers_[answer].logprobs.Add(*call_.model->text().tokenizer, event.event.text, event.tokens);
    }
    Show(answer, event.event.text);
  }
  void KeepAlive() override {
    if (form_.stream) Chunk(0, "", nullptr);
  }
  void EndAnswer(size_t answer, const AnswerEnd& end) override {
    if (form_.stream) Chunk(answer, "", OutcomeName(end));
  }
  void End(std::span<const AnswerEnd> ends) override {
    const OrderedJson usage = OpenAiUsage(ends, form_.answers_per_prompt);
    OrderedJson object = Object();
    if (!form_.stream) {
      for (size_t i = 0; i < answers_.size(); ++i) {
        object["choices"].push_back(Choice(i, answers_[i].text, OutcomeName(ends[i])));
      }
      object["usage"] = usage;
      return call_.Reply(object);
    }
    if (form_.include_usage) {
      object["usage"] = usage;
      call_.exchange->Write(SseData(object));
    }
    call_.exchange->Write("data: [DONE]\n\n");
    call_.exchange->EndStream();
  }
  void Fail(const ApiError& error) override {
    if (!form_.stream) return call_.Fail(error);
    call_.exchange->Write(SseData(ErrorBody(call_.style, error, call_.request_id)));
    call_.exchange->EndStream();
  }

 private:
  struct Answer {
    std::string text;
    CompletionLogprobs logprobs;
  };

  void Show(size_t answer, const std::string& text) {
    if (form_.stream) {
      Chunk(answer, text, nullptr);
    } else {
      answers_[answer].text += text;
    }
  }
  OrderedJson Object() const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", form_.model},
            {"choices", OrderedJson::array()}};
  }
  OrderedJson Choice(size_t answer, const std::string& text, OrderedJson finish) {
    OrderedJson choice = {{"index", answer}, {"text", text}, {"logprobs", nullptr}};
    if (form_.logprobs) choice["logprobs"] = answers_[answer].logprobs.Take();
    choice["finish_reason"] = std::move(finish);
    return choice;
  }
  void Chunk(size_t answer, const std::string& text, OrderedJson finish) {
    OrderedJson object = Object();
    object["choices"].push_back(Choice(answer, text, std::move(finish)));
    call_.exchange->Write(SseData(object));
  }

  const Call call_;
  const CompletionForm form_;
  const std::string id_ = NewId("cmpl-");
  const std::time_t created_ = std::time(nullptr);
  std::vector<Answer> answers_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeCompletionWriter(const Call& call, CompletionForm form) {
  return std::make_unique<CompletionWriter>(call, std::move(form));
}

}  // namespace tq::server
