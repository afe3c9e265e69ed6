#include "eval/task_suite.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>

namespace tq {
namespace {

// The ids of an answer. Errors: kCancelled, what the engine says.
Result<std::vector<int32_t>> ReadAnswer(TokenStream& stream, const std::atomic<bool>* cancel) {
  std::vector<int32_t> ids;
  while (const std::optional<int32_t> id = stream.Next()) {
    ids.push_back(*id);
    if (cancel != nullptr && cancel->load()) return Cancelled("evaluation stopped");
  }
  if (stream.finish_reason() == FinishReason::kError) return stream.status();
  return ids;
}

}  // namespace

std::string_view AnswerPart(std::string_view text) {
  constexpr std::string_view kEnd = "</think>";
  const size_t at = text.rfind(kEnd);
  if (at == std::string_view::npos) return text;
  text.remove_prefix(at + kEnd.size());
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  return text;
}

Result<TaskReport> ScoreTasks(Engine& engine, const Tokenizer& tokenizer,
                              std::span<const Task> tasks, const TaskOptions& options) {
  // So many wait that the engine never runs dry; fewer than it refuses.
  const auto most =
      static_cast<size_t>(std::min(2 * engine.options().max_sequences, engine.options().max_queue));
  const auto start = std::chrono::steady_clock::now();
  TaskReport report;
  std::deque<std::shared_ptr<TokenStream>> streams;  // of tasks[done] and the next ones
  size_t submitted = 0;
  for (size_t done = 0; done < tasks.size(); ++done) {
    for (; submitted < tasks.size() && streams.size() < most; ++submitted) {
      GenerateRequest request;
      request.prompt = tasks[submitted].prompt;
      request.max_tokens = options.max_tokens;
      request.end_ids = options.end_ids;
      TQ_ASSIGN_OR_RETURN(std::shared_ptr<TokenStream> stream, engine.Submit(std::move(request)));
      streams.push_back(std::move(stream));
    }
    TQ_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                        ReadAnswer(*streams.front(), options.cancel));
    streams.pop_front();
    const std::string text = tokenizer.Decode(ids, /*skip_special=*/false);
    const Task& task = tasks[done];
    const bool right = AnswerPart(text) == task.answer;
    for (TaskScore* score : {&report.all, &report.kinds[task.kind]}) {
      ++score->count;
      score->right += right ? 1 : 0;
    }
    if (!right) report.misses.push_back({done, std::string(AnswerPart(text))});
    report.generated_tokens += static_cast<int64_t>(ids.size());
    if (options.progress) {
      options.progress(static_cast<int64_t>(done + 1), static_cast<int64_t>(tasks.size()));
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tq
