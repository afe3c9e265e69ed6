// What went wrong with answers in public elsewhere, through the whole server: by all three APIs, as
// a stream and at once. The names begin with the ids of the cases.
#include "server/cases_for_test.h"

namespace tq::server {
namespace {

using tq::test::HttpReply;

struct AnswerCase {
  const char* id;
  std::string chat_template;
  std::string says;
  Lines lines;
  const char* finish = "tool_calls";
  bool tools = true;
};

std::string Call(const std::string& name, const std::string& arguments) {
  return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
         "}\n</tool_call>";
}

std::vector<AnswerCase> AnswerCases() {
  return {
      {"TC02", kHermes, "Hello! <b>How</b> are you?", {"text Hello! <b>How</b> are you?"}, "stop"},
      {"TC03",
       kXml,
       "<tool_call>\n<function=find>\n<parameter=offset>\n5\n</parameter>\n<parameter=text>\na\n"
       "</parameter>\n</function>\n</tool_call>",
       {R"(call find {"offset":5,"text":"a"})"}},
      {"TC04",
       kHermes,
       Call("shell", R"({"command": "cp -r src/{lib,bin dest \"[}"})"),
       {R"(call shell {"command":"cp -r src/{lib,bin dest \"[}"})"}},
      {"TC05",
       kMistral,
       R"([TOOL_CALLS][{"name": "weather", "arguments": {"city": "42."}}])",
       {R"(call weather {"city":"42."})"}},
      {"TC06",
       kMistral,
       R"([TOOL_CALLS]weather{"city":"Oslo"})",
       {R"(call weather {"city":"Oslo"})"}},
      {"TC09", kHermes, "Look: <tool_", {"text Look: <tool_"}, "stop"},
      {"TC11",
       kHermes,
       R"(<tool_call>{"arguments": {"city": "Oslo"}, "name": "weather"}</tool_call>)",
       {R"(call weather {"city":"Oslo"})"}},
      {"TC12", kHermes, Call("find", R"("{\"text\": \"a\"}")"), {R"(call find {"text":"a"})"}},
      {"TC13",
       kXml,
       "<tool_call><function= weather\n>\n</function></tool_call>",
       {"call weather {}"}},
      {"TC13 unknown", kHermes, Call("teleport", R"({"to": 1})"), {R"(call teleport {"to":1})"}},
      {"TC14",
       kHarmony,
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
       "Hello.",
       {"reasoning Hm.", "text Hello."},
       "stop"},
      {"TC15",
       kHermes,
       Call("weather", R"({"city": "Oslo"})") + "\n" + Call("weather", R"({"city": "Rome"})"),
       {R"(call weather {"city":"Oslo"})", R"(call weather {"city":"Rome"})"}},
      {"TC17",
       kHermes,
       "<think>need data " + Call("weather", R"({"city": "Oslo"})"),
       {"reasoning need data", R"(call weather {"city":"Oslo"})"}},
      {"TM09", kOpened, "Hm.\n</think>\n\nHi", {"reasoning Hm.", "text Hi"}, "stop"},
      {"TM09 no tools",
       kOpened,
       "Hm.\n</think>\n\nHi",
       {"reasoning Hm.", "text Hi"},
       "stop",
       false},
      {"ST03",
       kHarmony,
       "<|channel|>final<|message|>Hi<|end|><|start|>assist",
       {"text Hi"},
       "stop"},
      {"ST07",
       kHermes,
       "\xEC\x95\x88\xEB\x85\x95 ok",
       {"text \xEC\x95\x88\xEB\x85\x95 ok"},
       "stop"},
  };
}

// TC08: one reader of answers for streams and for whole ones.
TEST(Cases, TC08_TC_TM_ST_AnswersAreTheSameHoweverTheyAreAskedFor) {
  for (const AnswerCase& item : AnswerCases()) {
    TestServer server(Says(item.says, item.chat_template));
    for (const char* path : kPaths) {
      SCOPED_TRACE(std::string(item.id) + " " + path);
      Lines expected = item.lines;
      expected.push_back(EndOf(path, item.finish));
      const HttpReply whole = server.Post(path, Body(path, item.tools, false).dump());
      ASSERT_EQ(whole.status, 200) << whole.body;
      EXPECT_EQ(SummaryOf(whole.json()), expected) << whole.body;
      const HttpReply stream = server.Post(path, Body(path, item.tools, true).dump());
      EXPECT_EQ(StreamOf(stream.body).lines, expected) << stream.body;
    }
  }
}

// A call that the limit of tokens cuts: what was sent stays, nothing breaks, and the server goes
// on.
TEST(Cases, TC01_ACallThatIsCutEndsWithLength) {
  TestServer server(Says(Call("weather", R"({"city": "Oslo", "unit": "C"})")));
  for (const char* path : kPaths) {
    for (int most = 1; most < 70; most += 3) {
      const HttpReply whole = server.Post(path, Body(path, true, false, most).dump());
      ASSERT_EQ(whole.status, 200) << path << most << whole.body;
      const HttpReply stream = server.Post(path, Body(path, true, true, most).dump());
      EXPECT_TRUE(stream.complete);
      const Lines lines = StreamOf(stream.body).lines;
      ASSERT_FALSE(lines.empty());
      EXPECT_TRUE(lines.back() == EndOf(path, "length") ||
                  lines.back() == EndOf(path, "tool_calls"))
          << path << " " << most << " " << lines.back();
    }
  }
}

// One end of each stream, in the right word, and it is the last thing but for usage and [DONE].
TEST(Cases, TC07_OneTerminalChunk) {
  const std::pair<std::string, std::string> cases[] = {
      {Call("ping", "{}"), "tool_calls"}, {std::string(100, 'x'), "length"}, {"Hi", "stop"}};
  for (const auto& [says, finish] : cases) {
    TestServer server(Says(says));
    const HttpReply reply = server.Post(kPaths[0], Body(kPaths[0], true, true, 60).dump());
    Lines ends;
    bool open = true;
    for (const Json& chunk : EventData(reply)) {
      EXPECT_TRUE(open || chunk["choices"].empty());
      for (const Json& choice : chunk["choices"]) {
        if (choice["finish_reason"].is_null()) continue;
        ends.push_back(choice["finish_reason"].get<std::string>());
        open = false;
      }
    }
    EXPECT_EQ(ends, Lines{finish});
  }
}

// A stop string behind what other stages hold back, in one pipeline.
TEST(Cases, ST02_StopStringsBehindThoughtsAndMarks) {
  TestServer server(Says("<think>Hm <|e</think>Yes <|end|> no"));
  for (const bool stream : {false, true}) {
    Json body = Body(kPaths[0], true, stream);
    body["stop"] = "<|end|>";
    const HttpReply reply = server.Post(kPaths[0], body.dump());
    const Lines lines = stream ? StreamOf(reply.body).lines : SummaryOf(reply.json());
    EXPECT_EQ(lines, (Lines{"reasoning Hm <|e", "text Yes", "end stop"}));
  }
}

TEST(Cases, TM10_ThinkingSwitchedOffIsAnAnswer) {
  const std::string chat_template =
      TemplateWith("<tool_call>arguments</tool_call>",
                   "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>"
                   "\n\n{% else %}<think>{% endif %}");
  TestServer server(Says("The answer.", chat_template));
  for (const bool stream : {false, true}) {
    Json body = Body(kPaths[0], false, stream);
    for (const bool thinks : {false, true}) {
      body["chat_template_kwargs"] = {{"enable_thinking", thinks}};
      const HttpReply reply = server.Post(kPaths[0], body.dump());
      const Lines lines = stream ? StreamOf(reply.body).lines : SummaryOf(reply.json());
      EXPECT_EQ(lines.front(), thinks ? "reasoning The answer." : "text The answer.");
    }
  }
}

}  // namespace
}  // namespace tq::server
