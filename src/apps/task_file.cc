#include "apps/task_file.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/flags.h"
#include "base/file.h"
#include "base/json.h"
#include "chat/parse_messages.h"

namespace tq {
namespace {

Result<std::string> TextOf(const OrderedJson& line, const char* key) {
  const auto found = line.find(key);
  if (found != line.end() && found->is_string()) return found->get<std::string>();
  return InvalidArgument(fmt::format("{}: expected a text, found {}", key,
                                     found == line.end() ? "nothing" : found->type_name()));
}

Result<Task> ReadTask(std::string_view text, std::string_view where, const TextAssets& assets) {
  TQ_ASSIGN_OR_RETURN(const OrderedJson line, ParseOrderedJson(text, where));
  if (!line.is_object()) {
    return InvalidArgument(fmt::format("expected an object, found {}", line.type_name()));
  }
  Task task;
  TQ_ASSIGN_OR_RETURN(task.kind, TextOf(line, "kind"));
  TQ_ASSIGN_OR_RETURN(task.answer, TextOf(line, "answer"));
  TQ_ASSIGN_OR_RETURN(const ChatInput input, ParseOpenAiChat(line));
  ChatPromptOptions options;
  const auto thinking = line.find("enable_thinking");
  if (thinking != line.end()) {
    if (!thinking->is_boolean()) {
      return InvalidArgument(
          fmt::format("enable_thinking: expected true or false, found {}", thinking->type_name()));
    }
    options.enable_thinking = thinking->get<bool>();
  }
  TQ_ASSIGN_OR_RETURN(task.prompt, EncodeChat(assets, input, options));
  return task;
}

}  // namespace

Result<std::vector<Task>> ReadTaskFile(const std::string& path, const TextAssets& assets,
                                       int64_t every) {
  TQ_ASSIGN_OR_RETURN(const std::string content, ReadTextFile(path));
  TQ_RETURN_IF_ERROR(CheckUtf8(content, path));
  std::vector<Task> tasks;
  std::string_view rest = content;
  int64_t count = 0;  // lines with something on them
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (count++ % every != 0) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    Result<Task> task = ReadTask(line, where, assets);
    if (!task.ok()) return task.status().WithContext(where);
    tasks.push_back(std::move(*task));
  }
  if (tasks.empty()) {
    return InvalidArgument(path + ": expected a task a line, found none");
  }
  return tasks;
}

}  // namespace tq
