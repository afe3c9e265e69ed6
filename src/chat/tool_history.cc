#include "chat/tool_history.h"

#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace tq {
namespace {

constexpr std::string_view kNoResult = "(no result)";

// An assistant message whose calls wait for results. Sets, since a request may hold very many.
struct OpenTurn {
  size_t message = 0;  // in the output
  std::vector<std::optional<ChatMessage>> results;
  std::vector<std::string> sent_ids;
  std::set<std::string> ids;
  // Calls without result: by the id that was sent, by name, and in order.
  std::set<std::pair<std::string, size_t>> by_id;
  std::set<std::pair<std::string, size_t>> by_name;
  std::set<size_t> open;
  bool active = false;
};

class Repair {
 public:
  explicit Repair(ChatInput& input) : input_(input) {}

  void Run() {
    std::vector<ChatMessage> messages = std::move(input_.messages);
    for (ChatMessage& message : messages) {
      if (message.role == ChatRole::kTool) {
        AddResult(std::move(message));
      } else if (message.role == ChatRole::kAssistant && turn_.active && Waits()) {
        Join(std::move(message));
      } else {
        const bool is_answered = !turn_.active || !Waits();
        Close(/*fill=*/!is_answered);
        Add(std::move(message));
      }
    }
    // Calls at the end may still be answered.
    Close(/*fill=*/false);
    input_.messages = std::move(out_);
  }

 private:
  bool Waits() const { return !turn_.open.empty(); }

  std::string FreeId() {
    std::string id;
    do id = fmt::format("call_{}", next_id_++);
    while (ids_.count(id) > 0);
    return id;
  }

  void Add(ChatMessage message) {
    out_.push_back(std::move(message));
    if (out_.back().tool_calls.empty()) return;
    turn_ = {};
    turn_.active = true;
    turn_.message = out_.size() - 1;
    NameCalls(0);
  }

  void NameCalls(size_t first) {
    std::vector<ToolCall>& calls = out_[turn_.message].tool_calls;
    for (size_t i = first; i < calls.size(); ++i) {
      turn_.sent_ids.push_back(calls[i].id);
      turn_.by_id.emplace(calls[i].id, i);
      turn_.by_name.emplace(calls[i].name, i);
      turn_.open.insert(i);
      if (calls[i].id.empty() || turn_.ids.count(calls[i].id) > 0) calls[i].id = FreeId();
      turn_.ids.insert(calls[i].id);
      ids_.insert(calls[i].id);
    }
    turn_.results.resize(calls.size());
  }

  // The rest of an answer that was sent in pieces.
  void Join(ChatMessage message) {
    ChatMessage& turn = out_[turn_.message];
    for (ContentPart& part : message.content) turn.content.push_back(std::move(part));
    turn.reasoning += message.reasoning;
    turn.generated.reset();
    const size_t first = turn.tool_calls.size();
    for (ToolCall& call : message.tool_calls) turn.tool_calls.push_back(std::move(call));
    NameCalls(first);
  }

  // The call of a result: by id; by name or order when the result has none.
  std::optional<size_t> Find(const ChatMessage& result) const {
    const auto first = [](const std::set<std::pair<std::string, size_t>>& calls,
                          const std::string& key) -> std::optional<size_t> {
      const auto found = calls.lower_bound({key, 0});
      if (found == calls.end() || found->first != key) return std::nullopt;
      return found->second;
    };
    if (!Waits()) return std::nullopt;
    if (!result.tool_call_id.empty()) return first(turn_.by_id, result.tool_call_id);
    if (!result.name.empty()) return first(turn_.by_name, result.name);
    return *turn_.open.begin();
  }

  void AddResult(ChatMessage result) {
    const std::optional<size_t> place = Find(result);
    if (!place) {
      input_.notes.push_back(
          fmt::format("a tool result for the unknown call {} became a user message",
                      OrderedJson(result.tool_call_id).dump(-1, ' ', true)));
      ChatMessage message = MakeMessage(ChatRole::kUser, "Result of a tool call:\n");
      for (ContentPart& part : result.content) message.content.push_back(std::move(part));
      // The results of the open turn come first.
      (turn_.active ? orphans_ : out_).push_back(std::move(message));
      return;
    }
    const ToolCall& call = out_[turn_.message].tool_calls[*place];
    result.tool_call_id = call.id;
    turn_.by_id.erase({turn_.sent_ids[*place], *place});
    turn_.by_name.erase({call.name, *place});
    turn_.open.erase(*place);
    turn_.results[*place] = std::move(result);
  }

  void Close(bool fill) {
    if (!turn_.active) return;
    // Copies of ids and names: the output grows below.
    const std::vector<ToolCall> calls = out_[turn_.message].tool_calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (turn_.results[i].has_value()) {
        out_.push_back(std::move(*turn_.results[i]));
      } else if (fill) {
        ChatMessage result = MakeMessage(ChatRole::kTool, kNoResult);
        result.tool_call_id = calls[i].id;
        out_.push_back(std::move(result));
        input_.notes.push_back(
            fmt::format("the call {} had no result", OrderedJson(calls[i].id).dump(-1, ' ', true)));
      }
    }
    turn_ = {};
    for (ChatMessage& orphan : orphans_) out_.push_back(std::move(orphan));
    orphans_.clear();
  }

  ChatInput& input_;
  std::vector<ChatMessage> out_;
  std::vector<ChatMessage> orphans_;
  OpenTurn turn_;
  std::set<std::string> ids_;
  int next_id_ = 0;
};

}  // namespace

void RepairToolHistory(ChatInput& input) { Repair(input).Run(); }

}  // namespace tq
