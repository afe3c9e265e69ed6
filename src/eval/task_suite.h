// TaskSuite: questions with exact answers, scored through the engine, many at once. Knows ids and
// texts; what makes a prompt of a conversation is the caller's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace tq {

struct Task {
  std::string kind;
  std::vector<int32_t> prompt;
  std::string answer;
};

struct TaskScore {
  int64_t right = 0;
  int64_t count = 0;
  double share() const {
    return count == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(count);
  }
};

struct TaskReport {
  TaskScore all;
  std::map<std::string, TaskScore> kinds;
  struct Miss {
    size_t task = 0;  // its index
    std::string said;
  };
  std::vector<Miss> misses;
  int64_t generated_tokens = 0;
  double seconds = 0;
};

struct TaskOptions {
  int64_t max_tokens = 256;
  std::vector<int32_t> end_ids;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(int64_t done, int64_t total)> progress;
};

// What counts of a text: all after the last "</think>" and the line breaks behind it.
std::string_view AnswerPart(std::string_view text);

// Greedy answers to all tasks; one is right when its text, special tokens included, is the expected
// one to the byte. Errors: those of Engine::Submit, kCancelled.
Result<TaskReport> ScoreTasks(Engine& engine, const Tokenizer& tokenizer,
                              std::span<const Task> tasks, const TaskOptions& options);

}  // namespace tq
