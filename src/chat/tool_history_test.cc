// Histories of tool calls that clients send, and what they become.
#include "chat/tool_history.h"

#include <gtest/gtest.h>

#include "chat/parse_messages.h"

namespace tq {
namespace {

ChatInput Parse(std::string_view json) {
  Result<ChatInput> input = ParseChatInput(json, "request");
  EXPECT_TRUE(input.ok()) << input.status().message();
  return input.ok() ? *input : ChatInput();
}

TEST(ToolHistory, ResultsArePairedById) {
  // The client put the assistant's text between the call and its result.
  const ChatInput input = Parse(R"([
      {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f"}}]},
      {"role": "assistant", "content": "text"},
      {"role": "tool", "tool_call_id": "c1", "content": "r"}])");
  ASSERT_EQ(input.messages.size(), 2u);
  EXPECT_EQ(input.messages[0].Text(), "text");
  EXPECT_EQ(input.messages[0].tool_calls.size(), 1u);
  EXPECT_EQ(input.messages[1].Text(), "r");
}

TEST(ToolHistory, MissingResultsAreFilledIn) {
  const ChatInput input = Parse(R"({"system": "", "messages": [
      {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}},
                                        {"type": "tool_use", "id": "t2", "name": "g", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": "r"},
                                   {"type": "text", "text": "go"}]}]})");
  ASSERT_EQ(input.messages.size(), 4u);
  EXPECT_EQ(input.messages[1].tool_call_id, "t1");
  EXPECT_EQ(input.messages[1].Text(), "(no result)");
  EXPECT_EQ(input.messages[2].Text(), "r");
  EXPECT_EQ(input.messages[3].Text(), "go");
  EXPECT_EQ(input.notes.size(), 1u);
  // At the end results may still come.
  EXPECT_EQ(
      Parse(R"([{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}])")
          .messages.size(),
      1u);
}

TEST(ToolHistory, ResultsOfUnknownCallsComeBehindTheOthers) {
  const ChatInput input = Parse(R"([
      {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
      {"role": "tool", "tool_call_id": "?", "content": "lost"},
      {"role": "tool", "tool_call_id": "c", "content": "r"},
      {"role": "tool", "tool_call_id": "c", "content": "twice"}])");
  ASSERT_EQ(input.messages.size(), 4u);
  EXPECT_EQ(input.messages[1].Text(), "r");
  EXPECT_EQ(input.messages[2].Text(), "Result of a tool call:\nlost");
  EXPECT_EQ(input.messages[3].Text(), "Result of a tool call:\ntwice");
  EXPECT_EQ(input.notes.size(), 2u);
}

TEST(ToolHistory, CallsWithoutIds) {
  const ChatInput input = Parse(R"([
      {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "g"}}]},
      {"role": "tool", "name": "g", "content": "of g"}, {"role": "function", "content": "of f"},
      {"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": "f"}}]},
      {"role": "tool", "tool_call_id": "call_0", "content": "again"}])");
  const std::vector<ChatMessage>& messages = input.messages;
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[1].Text(), "of f");
  EXPECT_EQ(messages[1].tool_call_id, "call_0");
  EXPECT_EQ(messages[2].Text(), "of g");
  EXPECT_EQ(messages[2].tool_call_id, "call_1");
  // Some models count anew in every turn: their ids stay.
  EXPECT_EQ(messages[3].tool_calls[0].id, "call_0");
  EXPECT_EQ(messages[4].tool_call_id, "call_0");
  EXPECT_EQ(messages[4].Text(), "again");
}

TEST(ToolHistory, TwoCallsOfOneId) {
  const ChatInput input = Parse(R"([
      {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}},
                                           {"id": "c", "function": {"name": "g"}}]},
      {"role": "tool", "tool_call_id": "c", "content": "1"},
      {"role": "tool", "tool_call_id": "c", "content": "2"}])");
  ASSERT_EQ(input.messages.size(), 3u);
  EXPECT_EQ(input.messages[0].tool_calls[1].id, "call_0");
  EXPECT_EQ(input.messages[1].Text(), "1");
  EXPECT_EQ(input.messages[2].Text(), "2");
  EXPECT_EQ(input.messages[2].tool_call_id, "call_0");
  EXPECT_TRUE(input.notes.empty());
}

}  // namespace
}  // namespace tq
