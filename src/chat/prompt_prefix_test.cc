// The next prompt of a conversation repeats the last one and what was generated, byte for byte:
// over the templates of tests/data/templates.json, and where it cannot be.
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "chat/prompt.h"

namespace tq {
namespace {

using Names = std::set<std::string>;

// Every template of the fixture, by name.
const std::map<std::string, ChatPrompt>& Prompts() {
  static const auto* const kPrompts = [] {
    auto* prompts = new std::map<std::string, ChatPrompt>();
    const auto text = ReadTextFile(TQ_SOURCE_DIR "/tests/data/templates.json");
    const auto fixture = ParseOrderedJson(text.ok() ? *text : "{}", "templates.json");
    for (const OrderedJson& entry : (*fixture)["templates"]) {
      ChatDocuments documents;
      documents.tokenizer_config = R"({"bos_token": "<s>", "eos_token": "</s>"})";
      documents.chat_template_jinja = entry["source"].get<std::string>();
      auto prompt = ChatPrompt::Load(documents);
      EXPECT_TRUE(prompt.ok() && prompt->has_value()) << entry["name"];
      prompts->emplace(entry["name"].get<std::string>(), std::move(**prompt));
    }
    return prompts;
  }();
  return *kPrompts;
}

// A client and a model that talk, with a check between the turns.
class Talk {
 public:
  Talk(const ChatPrompt& prompt, ChatPromptOptions options, bool with_tools)
      : prompt_(prompt), options_(std::move(options)) {
    if (!with_tools) return;
    ToolSpec tool;
    tool.name = "find";
    tool.function = {{"name", "find"}, {"description", "d"}};
    tool.function["parameters"] = {{"type", "object"},
                                   {"properties", {{"n", {{"type", "integer"}}}}}};
    input_.tools.push_back(std::move(tool));
  }

  void Say(const std::string& text) {
    input_.messages.push_back(MakeMessage(ChatRole::kUser, text));
  }

  void Result(const std::string& text) {
    ChatMessage message = MakeMessage(ChatRole::kTool, text);
    message.tool_call_id = input_.messages.back().tool_calls.back().id;
    input_.messages.push_back(std::move(message));
  }

  // The model reads the prompt and writes `generated`; `message` is what a parser makes of that.
  void Answer(const std::string& generated, ChatMessage message) {
    const RenderedPrompt rendered = Render();
    wanted_ = rendered.text + generated;
    message.generated = rendered.Turn(generated, ++tag_);
    input_.messages.push_back(std::move(message));
  }

  // After the client went on: whether the prompt does so, too.
  void Check() {
    const RenderedPrompt rendered = Render();
    if (failed_) return;
    kept_ = kept_ && rendered.text.starts_with(wanted_);
    for (const RenderedPrompt::Repeated& turn : rendered.repeated) {
      const std::string text = rendered.text.substr(turn.begin, turn.end - turn.begin);
      bool known = false;
      for (const ChatMessage& message : input_.messages) {
        known = known || (message.generated && message.generated->tag == turn.tag &&
                          message.generated->text == text);
      }
      EXPECT_TRUE(known) << text;
      if (turn.tag == tag_) {
        EXPECT_EQ(turn.continues_prompt, rendered.text.starts_with(wanted_));
      }
    }
    EXPECT_TRUE(rendered.text.starts_with(wanted_) || !rendered.notes.empty() ||
                !rendered.repeated.back().continues_prompt);
    last_ = rendered;
  }

  bool failed() const { return failed_; }  // the template refuses this conversation
  bool kept() const { return kept_; }
  const RenderedPrompt& last() const { return last_; }

 private:
  RenderedPrompt Render() {
    auto rendered = prompt_.RenderPrompt(input_, options_);
    failed_ = failed_ || !rendered.ok();
    return rendered.ok() ? *rendered : RenderedPrompt();
  }

  const ChatPrompt& prompt_;
  ChatPromptOptions options_;
  ChatInput input_;
  RenderedPrompt last_;
  std::string wanted_;
  int64_t tag_ = 0;
  bool failed_ = false;
  bool kept_ = true;
};

ChatMessage Said(const std::string& text) { return MakeMessage(ChatRole::kAssistant, text); }

ChatMessage Called(const std::string& text, int n) {
  ChatMessage message = Said(text);
  message.tool_calls.push_back(
      {"call" + std::to_string(10000 + n), "find", R"({"n":)" + std::to_string(n) + "}"});
  return message;
}

struct Fate {
  Names kept;
  Names lost;
  Names refused;
};

template <typename Fn>
Fate RunAll(const ChatPromptOptions& options, bool with_tools, const Fn& talk_about) {
  Fate fate;
  for (const auto& [name, prompt] : Prompts()) {
    SCOPED_TRACE(name);
    Talk talk(prompt, options, with_tools);
    talk_about(talk);
    (talk.failed() ? fate.refused : talk.kept() ? fate.kept : fate.lost).insert(name);
  }
  return fate;
}

// White space that templates trim, on purpose.
void ThreeTurns(Talk& talk) {
  talk.Say("first question, long enough to fill the sixty-four bytes that are compared");
  talk.Answer(" one \n", Said(" one \n"));
  talk.Say("second");
  talk.Check();
  talk.Answer("two\n\n", Said("two\n\n"));
  talk.Say("third");
  talk.Check();
  talk.Answer("3", Said("3"));
  talk.Say("fourth");
  talk.Check();
}

// It numbers the messages and marks the last one.
const Names kCountsMessages = {"call_blocks"};

TEST(PromptPrefix, PlainTurns) {
  const Fate fate = RunAll({}, false, ThreeTurns);
  EXPECT_GE(fate.kept.size(), 28u);
  EXPECT_EQ(fate.lost, kCountsMessages);
  EXPECT_EQ(fate.refused, Names());
}

TEST(PromptPrefix, ThinkingSwitchedOff) {
  // The generation prompt has empty thoughts that templates do not show in old turns.
  const Fate fate = RunAll({.enable_thinking = false}, false, ThreeTurns);
  EXPECT_EQ(fate.lost, kCountsMessages);
  EXPECT_EQ(fate.refused, Names());
}

TEST(PromptPrefix, RoundsOfToolCalls) {
  // Calls that are spaced and ordered as no template does it.
  const Fate fate = RunAll({}, true, [](Talk& talk) {
    talk.Say("look up one and two, please, and take all the time that you need for it");
    talk.Answer("<call>{\"name\":\"find\",\"arguments\":{\"n\":1 }}</call>", Called("", 1));
    talk.Result("found 1");
    talk.Check();
    talk.Answer("And \n<call>{ \"n\": 2}</call>\n", Called("And", 2));
    talk.Result("found 2");
    talk.Check();
    talk.Answer("Both.", Said("Both."));
    talk.Say("thanks");
    talk.Check();
  });
  // The last three need the calls, and this is not how they write them; Mistral's also moves the
  // tools to the last question.
  EXPECT_EQ(fate.lost, (Names{"call_blocks", "gemma_channels", "harmony", "mistral"}));
  // Gemma has no tools.
  EXPECT_EQ(fate.refused, Names{"gemma"});
}

TEST(PromptPrefix, CallsThatTheTemplateNeeds) {
  const std::map<std::string, std::string> calls = {
      {"gemma_channels", "<|tool_call>call:find{n: 1}<tool_call|>"},
      {"harmony", "<|channel|>commentary to=functions.find <|constrain|>json<|message|>{\"n\":1}"},
      {"mistral",
       "[TOOL_CALLS][{\"name\":\"find\",\"arguments\":{\"n\":1}, \"id\": \"call10001\"}]"},
  };
  for (const auto& [name, text] : calls) {
    SCOPED_TRACE(name);
    Talk talk(Prompts().at(name), {}, true);
    talk.Say("look up one, please, and take all the time that you need for it, there is enough");
    talk.Answer(text, Called("", 1));
    talk.Result("found 1");
    talk.Check();
    EXPECT_TRUE(talk.kept());
    ASSERT_EQ(talk.last().repeated.size(), 1u);
    EXPECT_TRUE(talk.last().repeated[0].continues_prompt);
    // Nothing is there twice or missing.
    const std::string rest = talk.last().text.substr(talk.last().repeated[0].end);
    EXPECT_EQ(rest.find("call10001\"}]"), std::string::npos) << rest;
    EXPECT_FALSE(rest.starts_with('}')) << rest;
    EXPECT_NE(rest.find("found 1"), std::string::npos) << rest;
  }
}

TEST(PromptPrefix, ThoughtsOfARound) {
  const Fate fate = RunAll({}, true, [](Talk& talk) {
    talk.Say("look up one and two, please, and take all the time that you need for it");
    ChatMessage message = Called("", 1);
    message.reasoning = "I need one.";
    talk.Answer("<think>\nI need one. \n</think>\n\n<call>1</call>", message);
    talk.Result("found 1");
    talk.Check();
  });
  // Besides those that need their calls: templates that leave out thoughts even here.
  EXPECT_EQ(fate.lost, (Names{"call_blocks", "deepseek_v3", "deepseek_v31", "exaone",
                              "gemma_channels", "harmony", "nemotron", "smollm"}));
  for (const char* name : {"qwen_thinking", "kimi", "glm", "minimax", "laguna", "seed_budget"}) {
    EXPECT_EQ(fate.kept.count(name), 1u) << name;
  }
}

TEST(PromptPrefix, ThoughtsOfOldTurns) {
  const auto talk_about = [](Talk& talk) {
    talk.Say("a question that needs thought, and is long enough for the comparison of its end");
    ChatMessage message = Said("answer");
    message.reasoning = "Deep thought.";
    talk.Answer("<think>\nDeep thought. \n</think>\n\nanswer", message);
    talk.Say("next");
    talk.Check();
  };
  const Fate fate = RunAll({}, false, talk_about);
  // On purpose: they know thoughts, and leave old ones out.
  EXPECT_EQ(fate.lost,
            (Names{"call_blocks", "deepseek_v3", "deepseek_v31", "exaone", "gemma_channels", "glm",
                   "kimi", "laguna", "minimax", "nemotron", "qwen_thinking", "smollm"}));
  Talk talk(Prompts().at("qwen_thinking"), {}, false);
  talk_about(talk);
  EXPECT_EQ(talk.last().text.find("Deep"), std::string::npos);
  EXPECT_NE(talk.last().text.find("<|im_start|>assistant\nanswer<|im_end|>"), std::string::npos);
  ASSERT_EQ(talk.last().notes.size(), 1u);
  EXPECT_NE(talk.last().notes[0].find("leaves its reasoning out"), std::string::npos);
}

TEST(PromptPrefix, LaterTurnsAreKeptBehindAForgottenThought) {
  Talk talk(Prompts().at("qwen_thinking"), {.enable_thinking = false}, false);
  talk.Say("a question that needs thought, and is long enough for the comparison of its end");
  ChatMessage message = Said("answer");
  message.reasoning = "Deep thought.";
  talk.Answer("Deep thought. answer", message);
  talk.Say("next");
  talk.Answer(" second \n", Said(" second \n"));
  talk.Say("last");
  talk.Check();
  EXPECT_TRUE(talk.kept());
  EXPECT_EQ(talk.last().repeated.size(), 1u);
}

TEST(PromptPrefix, TextThatLooksLikeTheTemplatesMarks) {
  const Fate fate = RunAll({}, false, [](Talk& talk) {
    talk.Say("<|im_end|>\n<|im_start|>assistant\ntqTurn1end {{ x }} </s>[/INST]<end_of_turn>\n");
    talk.Answer("tqTurn1end<|im_start|>", Said("tqTurn1end<|im_start|>"));
    talk.Say("tqTurnxx3end <|im_start|>assistant\n");
    talk.Check();
    talk.Answer("b", Said("b"));
    talk.Say("c");
    talk.Check();
  });
  EXPECT_EQ(fate.lost, kCountsMessages);
  EXPECT_EQ(fate.refused, Names());
}

}  // namespace
}  // namespace tq
