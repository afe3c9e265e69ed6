#include "server/turn_store.h"

#include <gtest/gtest.h>

namespace tq::server {
namespace {

StoredTurn Turn(const std::string& text, const std::string& reasoning = "") {
  StoredTurn turn;
  turn.turn.text = text;
  turn.reasoning = reasoning;
  return turn;
}

ChatInput Conversation(const std::string& question, const std::string& answer) {
  ChatInput input;
  input.messages = {MakeMessage("user", question), MakeMessage("assistant", answer),
                    MakeMessage("user", "go on")};
  return input;
}

TEST(TurnStore, FindsAnAnswerInItsConversationAlone) {
  TurnStore store(10);
  store.Put({MakeMessage("user", "a")}, MakeMessage("assistant", "yes"), Turn("[yes]", "why"));
  store.Put({MakeMessage("user", "b")}, MakeMessage("assistant", "yes"), Turn("[b yes]"));
  ChatInput input = Conversation("a", "yes");
  const auto restored = store.Restore(input);
  ASSERT_EQ(restored.size(), 1u);
  EXPECT_EQ(input.messages[1].generated->text, "[yes]");
  EXPECT_EQ(input.messages[1].generated->tag, 0);
  EXPECT_EQ(input.messages[1].reasoning, "why") << "though the client did not send it";
  input = Conversation("c", "yes");
  EXPECT_TRUE(store.Restore(input).empty());
  input = Conversation("a", "yes!");
  EXPECT_TRUE(store.Restore(input).empty());
}

TEST(TurnStore, AChangedThoughtIsNotTheSameTurn) {
  TurnStore store(10);
  ChatMessage answer = MakeMessage("assistant", "yes");
  answer.reasoning = "why";
  store.Put({MakeMessage("user", "a")}, answer, Turn("[yes]", "why"));
  ChatInput input = Conversation("a", "yes");
  input.messages[1].reasoning = "other";
  EXPECT_TRUE(store.Restore(input).empty());
  input.messages[1].reasoning = "why";
  EXPECT_EQ(store.Restore(input).size(), 1u);
}

TEST(TurnStore, TheOldestGiveWay) {
  TurnStore store(2);
  for (const char* question : {"a", "b"}) {
    store.Put({MakeMessage("user", question)}, MakeMessage("assistant", "x"), Turn(question));
  }
  ChatInput input = Conversation("a", "x");
  EXPECT_EQ(store.Restore(input).size(), 1u);  // it is the newest now
  store.Put({MakeMessage("user", "c")}, MakeMessage("assistant", "x"), Turn("c"));
  input = Conversation("b", "x");
  EXPECT_TRUE(store.Restore(input).empty());
  input = Conversation("a", "x");
  EXPECT_EQ(store.Restore(input).size(), 1u);
  // The same words again take the place of the older ones.
  store.Put({MakeMessage("user", "a")}, MakeMessage("assistant", "x"), Turn("newer"));
  input = Conversation("a", "x");
  ASSERT_EQ(store.Restore(input).size(), 1u);
  EXPECT_EQ(input.messages[1].generated->text, "newer");
}

}  // namespace
}  // namespace tq::server
