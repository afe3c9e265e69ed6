// The program with text: prompts, stop strings, conversations, tokenization, perplexity.
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "e2e/small_checkpoint.h"

namespace tq::test {
namespace {

class Text : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder();
    WriteSmallCheckpoint(model());
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string model() { return *folder_ / "model"; }
  static Outcome Generate(const std::string& flags, const std::string& input = "") {
    return RunProgram(
        "generate --model " + model() + " --threads 1 --max-tokens 30 --min-tokens 30 " + flags,
        input);
  }
  static Json GenerateJson(const std::string& flags) {
    const Outcome outcome = Generate(flags + " --json --quiet");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = ParseJson(outcome.out, "stdout");
    EXPECT_TRUE(json.ok()) << outcome.out;
    return json.ok() ? json.value() : Json();
  }

  static TempFolder* folder_;
};

TempFolder* Text::folder_ = nullptr;

std::string IdsOf(std::string_view text) {
  std::string ids;
  for (const char c : text) ids += fmt::format(" {}", static_cast<unsigned char>(c) + kFirstByteId);
  return ids;
}

TEST_F(Text, TokenizeBothWays) {
  const std::string base = "tokenize --model " + model() + " ";
  EXPECT_EQ(RunProgram(base + "'a b'").out, "107 42 108\n");
  EXPECT_EQ(RunProgram(base, "\xC3\xA9").out, "205 179\n");
  EXPECT_EQ(RunProgram(base + "--decode 1,107,42,108").out, "<s>a b\n");
  EXPECT_EQ(RunProgram(base + "--decode '1 107' --no-special").out, "a\n");
  EXPECT_EQ(RunProgram(base + "'<s>a' --json").out, R"({"ids":[1,107],"tokens":["<s>","a"]})"
                                                    "\n");
  EXPECT_EQ(CheckError(RunProgram(base + "--decode x"), 2, {"x"}), "");
  EXPECT_EQ(CheckError(RunProgram(base, "\xFF"), 1, {"UTF-8"}), "");
}

TEST_F(Text, TokenizeRendersMessages) {
  const std::string file = *folder_ / "messages.json";
  const std::string command = "tokenize --model " + model() + " --chat " + file;
  ASSERT_TRUE(WriteFile(file, R"([{"role": "user", "content": "hi"}])").ok());
  EXPECT_EQ(RunProgram(command).out, "1 3" + IdsOf("hi") + " 4\n");
  // What a user writes ends no turn.
  ASSERT_TRUE(WriteFile(file, R"([{"role": "user", "content": "a</s>"}])").ok());
  EXPECT_EQ(RunProgram(command).out, "1 3" + IdsOf("a</s>") + " 4\n");
  ASSERT_TRUE(WriteFile(file, R"({"messages": []})").ok());
  EXPECT_EQ(CheckError(RunProgram(command), 1, {"messages.json"}), "");
}

TEST_F(Text, TokenizeReadsRequestsOfEveryApi) {
  const std::string file = *folder_ / "request.json";
  const std::string command = "tokenize --model " + model() + " --chat " + file;
  const std::string ids = "1 3" + IdsOf("hi") + " 4\n";
  for (const char* request :
       {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]})",
        R"({"system": "", "messages": [{"role": "user", "content": [{"type": "text",
            "text": "hi", "cache_control": {"type": "ephemeral"}}]}]})",
        R"({"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]})"}) {
    ASSERT_TRUE(WriteFile(file, request).ok());
    EXPECT_EQ(RunProgram(command).out, ids) << request;
  }
  EXPECT_EQ(RunProgram(command + " --api responses").out, ids);
  EXPECT_EQ(CheckError(RunProgram(command + " --api openai"), 1,
                       {"request.json: messages: expected a list of messages, found nothing"}),
            "");
  EXPECT_EQ(CheckError(RunProgram(command + " --api other"), 2, {"--api"}), "");
}

TEST_F(Text, TokenizeShowsSpecialTokens) {
  const std::string file = *folder_ / "shown.json";
  const std::string command = "tokenize --model " + model() + " ";
  ASSERT_TRUE(WriteFile(file, R"([{"role": "user", "content": "a\n\u001b[1m <|x|>"}])").ok());
  const Outcome shown = RunProgram(command + "--show --chat " + file);
  EXPECT_EQ(shown.out,
            "\u27E6<s>\u27E7\u27E6<|user|>\u27E7a\n\\x1b[1m <|x|>\u27E6<|assistant|>\u27E7\n");
  EXPECT_NE(shown.err.find("15 tokens, 3 of them special; 36 bytes"), std::string::npos)
      << shown.err;
  EXPECT_EQ(RunProgram(command + "--show --quiet 'a</s>'").err, "");
  EXPECT_EQ(RunProgram(command + "--show --quiet 'a</s>'").out, "a\u27E6</s>\u27E7\n");
  EXPECT_EQ(
      RunProgram(command + "--show --json 'a</s>'").out,
      R"({"ids":[107,2],"tokens":["a","</s>"],"pieces":[{"text":"a","special":false},{"text":"</s>","special":true}]})"
      "\n");
  EXPECT_EQ(CheckError(RunProgram(command + "--show --decode 1"), 2, {"--show"}), "");
}

TEST_F(Text, TokenizeComparesTwoModels) {
  // The other model has a token for "b c", another id for "z", and another template.
  const std::string other = *folder_ / "other";
  std::filesystem::copy(model(), other);
  const auto edit = [&](const std::string& name, const std::string& from, const std::string& to) {
    std::string text = ReadTextFile(other + "/" + name).value();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << name;
    ASSERT_TRUE(WriteFile(other + "/" + name, text.replace(at, from.size(), to)).ok());
  };
  edit("tokenizer.json", "\"merges\":[]", "\"merges\":[[\"b\",\"c\"]]");
  edit("tokenizer.json", "\"z\":132", "\"bc\":300,\"z\":301");
  edit("tokenizer_config.json", "<|assistant|>", "<|assistant|>\\n");
  const std::string command = "tokenize --model " + model() + " --diff " + other + " ";
  const Outcome equal = RunProgram(command + "'some text'");
  EXPECT_EQ(equal.exit_code, 0) << equal.err;
  EXPECT_EQ(equal.out, "text    equal, 9 bytes\ntokens  equal, 9\n");
  const Outcome differs = RunProgram(command + "'abcz bc'");
  EXPECT_EQ(CheckError(differs, 1, {model(), other, "differently"}), "");
  const std::string pad(other.size() > model().size() ? other.size() - model().size() : 0, ' ');
  EXPECT_EQ(
      differs.out,
      "text    equal, 7 bytes\n"
      "tokens  differ at token 1, 7 and 5 tokens\n"
      "  " +
          model() + pad +
          "   107:\"a\" >108:\"b\" 109:\"c\" 132:\"z\" 42:\" \" 108:\"b\" 109:\"c\"\n"
          "  " +
          other +
          "   107:\"a\" >300:\"bc\" 301:\"z\" 42:\" \" 300:\"bc\"\n"
          "        2 places cut differently (4 and 2 tokens), 1 equal piece with other ids\n");
  const Json json = ParseJson(RunProgram(command + "--json 'abcz bc'").out, "stdout").value();
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["equal_text"], true);
  EXPECT_EQ(json["first_token"], 1);
  EXPECT_EQ(json["places"], 2);
  EXPECT_EQ(json["pieces_with_other_ids"], 1);
  EXPECT_EQ(json["other"]["next_ids"][0], 300);
  const std::string file = *folder_ / "compared.json";
  ASSERT_TRUE(WriteFile(file, R"([{"role": "user", "content": "hi"}])").ok());
  const Outcome prompts = RunProgram(command + "--chat " + file);
  EXPECT_EQ(prompts.exit_code, 1);
  EXPECT_NE(prompts.out.find("text    differs at byte 26 (line 1), 26 and 27 bytes"),
            std::string::npos)
      << prompts.out;
  EXPECT_EQ(CheckError(RunProgram("tokenize --model " + model() + " --diff /none x"), 1, {"/none"}),
            "");
}

TEST_F(Text, TheChatTemplateMakesThePrompt) {
  const Json templated = GenerateJson("--prompt hi");
  const Json by_ids = GenerateJson("--prompt-tokens 1,3,114,115,4");
  EXPECT_EQ(templated["ids"], by_ids["ids"]);
  EXPECT_EQ(templated["stats"]["prompt_tokens"], 5);
  const Json raw = GenerateJson("--prompt hi --no-chat-template");
  EXPECT_EQ(raw["stats"]["prompt_tokens"], 2);
  // The template knows no token for the system role: its marker is text.
  const Json system = GenerateJson("--prompt hi --system s");
  EXPECT_EQ(system["stats"]["prompt_tokens"], 1 + 11 + 1 + 2 + 1);
}

TEST_F(Text, StreamedTextIsTheJsonText) {
  const Json json = GenerateJson("--prompt hi");
  const Outcome streamed = Generate("--prompt hi --quiet");
  EXPECT_EQ(streamed.out, json["text"].get<std::string>() + "\n");
  EXPECT_EQ(streamed.err, "");
  EXPECT_EQ(Generate("--quiet", "hi\n").out, streamed.out);
  const Outcome with_stats = Generate("--prompt hi");
  EXPECT_EQ(with_stats.out, streamed.out);
  EXPECT_NE(with_stats.err.find("tokens/s"), std::string::npos);
}

TEST_F(Text, AStopStringCutsTheAnswer) {
  const std::string whole = GenerateJson("--prompt hi")["text"].get<std::string>();
  ASSERT_GT(whole.size(), 8u);
  // A printable piece of the answer that the shell does not touch.
  size_t at = 0;
  while (at + 1 < whole.size() &&
         !(std::isalnum(static_cast<unsigned char>(whole[at])) != 0 && at > 0))
    ++at;
  ASSERT_LT(at + 1, whole.size());
  const std::string stop = whole.substr(at, 1);
  const Json cut = GenerateJson("--prompt hi --stop zzzz --stop " + stop);
  EXPECT_EQ(cut["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut["finish_reason"], "stop");
}

TEST_F(Text, LogprobsInJson) {
  const Json json = GenerateJson("--prompt hi --logprobs 2");
  const Json& content = json["logprobs"]["content"];
  ASSERT_EQ(content.size(), json["ids"].size());
  for (size_t i = 0; i < content.size(); ++i) {
    EXPECT_EQ(content[i]["id"], json["ids"][i]);
    ASSERT_EQ(content[i]["top_logprobs"].size(), 2u);
    // Greedy: the best one is the one.
    EXPECT_EQ(content[i]["top_logprobs"][0]["id"], content[i]["id"]);
    EXPECT_EQ(content[i]["top_logprobs"][0]["logprob"], content[i]["logprob"]);
    EXPECT_LT(content[i]["logprob"].get<double>(), 0.0);
    // Of ids beyond the tokenizer's there are none.
    EXPECT_EQ(content[i]["bytes"].empty(), content[i]["token"] == "");
  }
  EXPECT_EQ(GenerateJson("--prompt hi --logprobs 0")["logprobs"]["content"][0]["top_logprobs"],
            Json::array());
  EXPECT_FALSE(GenerateJson("--prompt hi").contains("logprobs"));
  EXPECT_EQ(CheckError(Generate("--prompt hi --logprobs 2"), 1, {"--logprobs", "--json"}), "");
  EXPECT_EQ(CheckError(Generate("--prompt hi --logprobs 21 --json"), 2, {"--logprobs"}), "");
}

TEST_F(Text, SeveralAnswers) {
  const Json json = GenerateJson("--prompt hi --n 3 --temp 1 --seed 4");
  ASSERT_EQ(json["answers"].size(), 3u);
  const Json one = GenerateJson("--prompt hi --temp 1 --seed 4");
  EXPECT_EQ(json["answers"][0]["ids"], one["ids"]);
  EXPECT_NE(json["answers"][1]["ids"], one["ids"]);
  const std::string seed = json["answers"][2]["seed"].dump();
  EXPECT_EQ(GenerateJson("--prompt hi --temp 1 --seed " + seed)["ids"], json["answers"][2]["ids"]);
  const Outcome text = Generate("--prompt hi --n 2 --temp 1 --seed 4 --quiet");
  EXPECT_EQ(text.out, "== answer 1\n" + json["answers"][0]["text"].get<std::string>() +
                          "\n\n== answer 2\n" + json["answers"][1]["text"].get<std::string>() +
                          "\n");
}

TEST_F(Text, SamplersHaveTheNamesOfOtherTools) {
  const std::string flags =
      "--prompt hi --temp 1.2 --seed 3 --typical-p 0.9 --xtc-probability 0.5 --xtc-threshold 0.05 "
      "--dry-multiplier 0.8 --dry-base 1.75 --dry-allowed-length 2 --dry-penalty-last-n 64 "
      "--presence-penalty 0.2 --frequency-penalty 0.1 --repeat-penalty 1.1 --repeat-last-n 64 "
      "--logit-bias 107=2 --bad-words b --samplers 'temperature;top_k;typ_p;xtc'";
  const Json first = GenerateJson(flags);
  EXPECT_EQ(first["text"].get<std::string>().find('b'), std::string::npos);
  EXPECT_EQ(GenerateJson(flags)["ids"], first["ids"]);
  EXPECT_NE(GenerateJson("--prompt hi --temp 1.2 --seed 3")["ids"], first["ids"]);
  EXPECT_EQ(CheckError(Generate("--prompt hi --samplers mirostat"), 2, {"mirostat", "top_k"}), "");
  const Json loop = GenerateJson("--prompt hi --logit-bias 107=1000 --loop-limit 5");
  EXPECT_EQ(loop["finish_reason"], "loop");
  EXPECT_EQ(loop["text"], "aaaaa");
}

TEST_F(Text, AListOfConversions) {
  const std::string text = *folder_ / "list.txt";
  const std::string tasks = *folder_ / "tasks.jsonl";
  std::string content;
  for (int i = 0; i < 30; ++i) content += "some line of text\n\n";
  ASSERT_TRUE(WriteFile(text, content).ok());
  const std::string answer =
      RunProgram("generate --quiet --prompt hi --max-tokens 6 --model " + model()).out;
  ASSERT_FALSE(answer.empty());
  const Json right = {{"kind", "easy"},
                      {"messages", Json::array({{{"role", "user"}, {"content", "hi"}}})},
                      {"answer", answer.substr(0, answer.size() - 1)}};
  Json wrong = right;
  wrong["kind"] = "hard";
  wrong["answer"] = "no";
  const auto dump = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  };
  ASSERT_TRUE(WriteFile(tasks, dump(right) + "\n" + dump(wrong)).ok());
  const std::string svg = *folder_ / "plot.svg";
  const std::string work = *folder_ / "work";
  std::filesystem::create_directory(work);
  const std::string command = "evaluate --reference " + model() + " --bits 2,4 --group-size 32 " +
                              "--work-dir " + work + " --text " + text +
                              " --seq-len 64 -n 2 --tasks " + tasks + " --task-tokens 6";
  const Outcome outcome = RunProgram(command + " --json --svg " + svg);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json rows = ParseJson(outcome.out, "stdout").value()["rows"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["name"], "tq2-g32");
  EXPECT_EQ(rows[0]["tasks"]["kinds"]["hard"]["right"], 0);
  EXPECT_EQ(rows[0]["tasks"]["count"], 2);
  EXPECT_FALSE(rows[0].contains("kl"));
  EXPECT_GT(rows[0]["bytes"], rows[2]["bytes"]);
  EXPECT_GT(rows[2]["bytes"], rows[1]["bytes"]);
  EXPECT_GT(rows[1]["kl"], rows[2]["kl"]);
  EXPECT_GT(rows[2]["kl"].get<double>(), 0.0);
  EXPECT_GT(rows[2]["top1_agreement"], rows[1]["top1_agreement"]);
  EXPECT_TRUE(std::filesystem::is_empty(work));
  const std::string plot = ReadTextFile(svg).value();
  EXPECT_NE(plot.find("tq2-g32"), std::string::npos);
  const Outcome table = RunProgram(command);
  EXPECT_NE(table.out.find("tq4-g32"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("hard"), std::string::npos) << table.out;
  const std::string evaluate = "evaluate --model " + model();
  EXPECT_EQ(CheckError(RunProgram(evaluate + " --bits 3 --text " + text), 1, {"--reference"}), "");
  EXPECT_EQ(CheckError(RunProgram("evaluate --reference " + model() + " --bits 3"), 1, {"--tasks"}),
            "");
  EXPECT_EQ(CheckError(RunProgram("evaluate --text " + text), 2, {"--model"}), "");
  ASSERT_TRUE(WriteFile(tasks, "\n{\"kind\": 3}\n").ok());
  EXPECT_EQ(CheckError(RunProgram(evaluate + " --tasks " + tasks), 1, {"tasks.jsonl:2", "kind"}),
            "");
}

TEST_F(Text, BadText) {
  EXPECT_EQ(
      CheckError(Generate("--prompt $(printf 'a\\377b')"), 1, {"--prompt", "UTF-8", "byte 1"}), "");
  EXPECT_EQ(CheckError(Generate("", "a\xC3"), 1, {"stdin", "UTF-8"}), "");
  EXPECT_EQ(CheckError(Generate("--no-chat-template", ""), 1, {"prompt"}), "");
  EXPECT_EQ(CheckError(Generate("", std::string(600, 'a')), 1, {"context", "512"}), "");
  EXPECT_EQ(CheckError(Generate("--prompt hi --no-chat-template --system s"), 1, {"chat template"}),
            "");
}

TEST_F(Text, AConversationRemembersUntilReset) {
  const std::string command =
      "chat --model " + model() + " --threads 1 --json --max-tokens 8 --min-tokens 8";
  const Outcome outcome =
      RunProgram(command, "hi\n\nhi\n/reset\nhi\n/system s\nhi\n/unknown\n/exit\nnot read\n");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("/unknown"), std::string::npos);
  std::vector<Json> turns;
  for (size_t begin = 0; begin < outcome.out.size();) {
    const size_t end = outcome.out.find('\n', begin);
    turns.push_back(ParseJson(outcome.out.substr(begin, end - begin), "stdout").value());
    begin = end + 1;
  }
  ASSERT_EQ(turns.size(), 4u);
  EXPECT_EQ(turns[0]["stats"]["prompt_tokens"], 5);
  EXPECT_GT(turns[1]["stats"]["prompt_tokens"], 9);
  EXPECT_EQ(turns[2]["ids"], turns[0]["ids"]);
  EXPECT_GT(turns[3]["stats"]["prompt_tokens"], 5);
}

TEST_F(Text, AConversationTakesUpWhatItHasComputed) {
  const std::string command = "chat --model " + model() + " --threads 1 --max-tokens 4";
  const std::string script = std::string(100, 'a') + "\nhi\n";
  const Outcome outcome = RunProgram(command + " --json", script);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const size_t line = outcome.out.find('\n') + 1;
  const auto first = ParseJson(outcome.out.substr(0, line), "stdout");
  const auto second = ParseJson(outcome.out.substr(line), "stdout");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)["stats"]["cached_tokens"], 0);
  EXPECT_GE((*second)["stats"]["cached_tokens"], 100);
  const Outcome text = RunProgram(command + " --verbose", script);
  EXPECT_NE(text.err.find(" cached) + "), std::string::npos) << text.err;
}

TEST_F(Text, AConversationBeyondTheContextIsAnError) {
  const Outcome outcome = RunProgram("chat --model " + model(), std::string(600, 'a') + "\n");
  EXPECT_EQ(CheckError(outcome, 1, {"context"}), "");
}

TEST_F(Text, PerplexityOfAFile) {
  const std::string file = *folder_ / "text.txt";
  std::string text;
  for (int i = 0; i < 30; ++i) text += "some line of text\n\n";
  ASSERT_TRUE(WriteFile(file, text).ok());
  const std::string base = "evaluate --json --seq-len 64 --model " + model() + " --text " + file;
  const Json json = ParseJson(RunProgram(base + " --num-samples 5").out, "stdout").value();
  EXPECT_EQ(json["chunks"], 5);
  EXPECT_EQ(json["targets"], 5 * 63);
  EXPECT_EQ(json["text_tokens"], 30 * 17 + 29 * 2);
  // A random model knows nothing: about the vocabulary's size.
  EXPECT_GT(json["perplexity"], 50.0);
  EXPECT_LT(json["perplexity"], 5000.0);
  const Json chunked =
      ParseJson(RunProgram(base + " --num-samples 5 --prefill-chunk 7 --threads 1").out, "stdout")
          .value();
  EXPECT_EQ(chunked["mean_nll"], json["mean_nll"]);
  EXPECT_EQ(CheckError(RunProgram("evaluate --seq-len 512 --num-samples 1 --model " + model() +
                                  " --text " + (*folder_ / "missing.txt")),
                       1, {"missing.txt"}),
            "");
  ASSERT_TRUE(WriteFile(file, "short").ok());
  EXPECT_EQ(CheckError(RunProgram(base), 1, {"64", "5"}), "");
}

}  // namespace
}  // namespace tq::test
