// Renderings against recorded ones of Jinja2 (tools/oracle/make_template_cases.py), byte for byte,
// and what templates must not be able to do.
#include "chat/chat_template.h"

#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"

namespace tq {
namespace {

OrderedJson ReadFixture(const std::string& name) {
  const std::string path = std::string(TQ_SOURCE_DIR) + "/tests/data/" + name;
  const Result<std::string> text = ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << text.status().message();
  Result<OrderedJson> json = ParseOrderedJson(text.ok() ? *text : "{}", path);
  EXPECT_TRUE(json.ok()) << json.status().message();
  return json.ok() ? *json : OrderedJson::object();
}

// Parses and renders in one step.
Result<std::string> Render(std::string_view source,
                           const OrderedJson& variables = OrderedJson::object(),
                           const TemplateLimits& limits = {}) {
  TQ_ASSIGN_OR_RETURN(const ChatTemplate parsed, ChatTemplate::Parse(source));
  return parsed.Render(variables, limits);
}

std::string RenderOk(std::string_view source,
                     const OrderedJson& variables = OrderedJson::object()) {
  const Result<std::string> text = Render(source, variables);
  EXPECT_TRUE(text.ok()) << source << "\n" << text.status().message();
  return text.ok() ? *text : "";
}

Status RenderError(std::string_view source, const OrderedJson& variables = OrderedJson::object(),
                   const TemplateLimits& limits = {}) {
  const Result<std::string> text = Render(source, variables, limits);
  EXPECT_FALSE(text.ok()) << source << "\nrendered as " << (text.ok() ? *text : "");
  return text.status();
}

Status ParseError(std::string_view source) {
  const Result<ChatTemplate> parsed = ChatTemplate::Parse(source);
  EXPECT_FALSE(parsed.ok()) << source;
  return parsed.status();
}

// A case of the fixture: "output", or "error" where the reference fails.
void CheckCase(const OrderedJson& expected, std::string_view source, const OrderedJson& variables) {
  SCOPED_TRACE(expected.value("name", std::string(source.substr(0, 400))));
  const Result<std::string> text = Render(source, variables);
  if (expected.contains("output")) {
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_EQ(*text, expected["output"].get<std::string>());
  } else {
    EXPECT_FALSE(text.ok()) << "expected a failure: " << expected["error"] << "\nfound: " << *text;
  }
}

TEST(ChatTemplateTest, FamiliesRenderAsJinjaDoes) {
  const OrderedJson fixture = ReadFixture("templates.json");
  ASSERT_GE(fixture["templates"].size(), 25u);
  for (const OrderedJson& expected : fixture["cases"]) {
    const OrderedJson& source = fixture["templates"][expected["template"].get<size_t>()]["source"];
    CheckCase(expected, source.get<std::string>(), fixture["vars"][expected["vars"].get<size_t>()]);
  }
}

TEST(ChatTemplateTest, SnippetsRenderAsJinjaDoes) {
  const OrderedJson fixture = ReadFixture("templates.json");
  ASSERT_GE(fixture["snippets"].size(), 300u);
  for (const OrderedJson& expected : fixture["snippets"]) {
    CheckCase(expected, expected["template"].get<std::string>(), fixture["snippet_vars"]);
  }
}

TEST(ChatTemplateTest, PromptsOfTheServerModel) {
  const OrderedJson fixture = ReadFixture("prompts.json");
  const Result<ChatTemplate> parsed = ChatTemplate::Parse(fixture["template"].get<std::string>());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  for (const OrderedJson& expected : fixture["cases"]) {
    OrderedJson variables = expected["kwargs"];
    if (variables.is_null()) variables = OrderedJson::object();
    variables["messages"] = expected["messages"];
    variables["add_generation_prompt"] = true;
    variables["bos_token"] = fixture["bos_token"];
    variables["eos_token"] = fixture["eos_token"];
    const Result<std::string> text = parsed->Render(variables);
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_EQ(*text, expected["text"].get<std::string>());
  }
}

TEST(ChatTemplateTest, RaisedTextReachesTheCaller) {
  const Status status = RenderError("a\nb\n{{ raise_exception('roles must alternate') }}");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "chat template line 3: roles must alternate");
}

TEST(ChatTemplateTest, ErrorsNameTheLineOfTheUse) {
  EXPECT_EQ(RenderError("{% macro f(x) %}\n{{ x }}\n{% endmacro %}\n{{ f(1) + 2 }}").message(),
            "chat template line 4: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(RenderError("{% for m in messages %}\n\n{{ m.content.text }}{% endfor %}",
                        OrderedJson::parse(R"({"messages": [{"role": "user"}]})"))
                .message(),
            "chat template line 3: 'dict object' has no attribute 'content'");
}

TEST(ChatTemplateTest, UnknownConstructsAreRefusedWhenParsed) {
  Status status = ParseError("ok\n{{ x | shout }}");
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), "chat template line 2: there is no filter named 'shout'");
  status = ParseError("\n\n{% for i in x %}{{ i is loud }}{% endfor %}");
  EXPECT_EQ(status.message(), "chat template line 3: there is no test named 'loud'");
  status = ParseError("\n{% if x %}{{ x | random }}{% endif %}");
  EXPECT_EQ(status.message(),
            "chat template line 2: the filter 'random' is not supported: a prompt has to be the "
            "same each time");
  for (const char* tag : {"include 'a'", "extends 'a'", "import 'a' as b", "from 'a' import b",
                          "block a", "autoescape true"}) {
    status = ParseError("\n{% " + std::string(tag) + " %}");
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("line 2: the tag '"), std::string::npos) << status.message();
  }
  EXPECT_EQ(ParseError("{% trans %}").code(), StatusCode::kCorrupt);
}

TEST(ChatTemplateTest, SyntaxErrorsNameTheLine) {
  EXPECT_EQ(ParseError("a\n{% if x %}\nb").message(),
            "chat template line 3: expected 'endif', found the end of the template");
  EXPECT_EQ(ParseError("a\n{{ 'x }}").message(),
            "chat template line 2: the string is never closed");
  EXPECT_EQ(ParseError("\xFF").message(), "chat template: the text is not valid UTF-8");
  EXPECT_FALSE(ChatTemplate::Parse("{{ 99999999999999999999 }}").ok());
}

TEST(ChatTemplateTest, LoopControlsInAnElseBranch) {
  EXPECT_EQ(RenderOk("{% for i in range(9) %}{% if i < 3 %}{{ i }}{% else %}{% break %}{% endif %}"
                     "{% endfor %}!"),
            "012!");
}

TEST(ChatTemplateTest, DoRunsAnExpressionForNothing) {
  EXPECT_EQ(RenderOk("{% set c = cycler(1, 2) %}{% do c.next() %}{{ c.next() }}"), "2");
}

TEST(ChatTemplateTest, KeepsUtf8AndKeyOrder) {
  const OrderedJson tool = OrderedJson::parse(R"({"z": "\u5929\u6c14", "a": {"y": 1, "b": [2]}})");
  EXPECT_EQ(RenderOk("{{ t | tojson }}", {{"t", tool}}),
            "{\"z\": \"\xE5\xA4\xA9\xE6\xB0\x94\", \"a\": {\"y\": 1, \"b\": [2]}}");
}

TEST(ChatTemplateTest, ThoughtsAreCutOutOfOldTurns) {
  const std::string source = "{{ m.split('</x>')[-1].lstrip('\\n') }}";
  EXPECT_EQ(RenderOk(source, {{"m", "<x>a</x>\n\nanswer"}}), "answer");
  EXPECT_EQ(RenderOk(source, {{"m", "answer"}}), "answer");
}

TEST(ChatTemplateTest, StrftimeNowKnowsTheYear) {
  const std::string year = RenderOk("{{ strftime_now('%Y') }}");
  EXPECT_EQ(year.size(), 4u);
  EXPECT_GE(year, "2024");
  EXPECT_EQ(RenderOk("{{ strftime_now('%d %b %Y') }}").size(), 11u);
  EXPECT_FALSE(Render("{{ strftime_now('%A' * 1000) }}").ok());
}

TEST(ChatTemplateTest, VariablesMustBeCleanJson) {
  EXPECT_FALSE(Render("{{ x }}", OrderedJson::array()).ok());
  EXPECT_EQ(RenderError("{{ x }}", {{"x", "\xFF"}}).message(),
            "chat template: the variable 'x' holds text that is not valid UTF-8");
  // What the template does not use is not looked at.
  EXPECT_EQ(RenderOk("ok", {{"x", "\xFF"}}), "ok");
  OrderedJson deep = 1;
  for (int i = 0; i < 1000; ++i) deep = OrderedJson::array({deep});
  EXPECT_FALSE(Render("{{ x }}", {{"x", deep}}).ok());
}

TEST(ChatTemplateTest, SandboxHoldsAttributes) {
  for (const char* source :
       {"{{ ''.__class__.__mro__ }}", "{{ x.__class__() }}", "{{ ''['__class__']['__base__'] }}",
        "{{ x | attr('__class__') | attr('__mro__') }}", "{{ '{0.__class__.__mro__}'.format(x) }}",
        "{{ raise_exception.__globals__['os'] }}", "{{ [].append(1) }}", "{{ {}.update(a=1) }}"}) {
    EXPECT_EQ(RenderError(source, {{"x", "y"}}).code(), StatusCode::kInvalidArgument) << source;
  }
}

TEST(ChatTemplateTest, EveryLimitIsAnError) {
  TemplateLimits limits;
  limits.max_steps = 100'000;
  limits.max_output_bytes = 1 << 16;
  for (const char* source : {
           // Time.
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{% for a in range(99999) %}{% set x = 'abcdefgh' * 8000 %}{% endfor %}",
           "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}"
           "{% set n.a, n.b = [n.a, n.a], [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
           // Memory.
           "{{ 'x' * 1000000000000 }}",
           "{{ [0] * 1000000000 }}",
           "{{ 'x'.center(99999999999) }}",
           "{{ '%99999999d' % 1 }}",
           "{{ '{:99999999}'.format(1) }}",
           "{{ 'a' | indent(99999999) }}",
           "{{ ('a' * 60000) | replace('a', 'b' * 60000) }}",
           "{{ [1] | tojson(indent=99999999) }}",
           "{% set n = namespace(s='xx') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}"
           "{% endfor %}",
           "{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = n.l + ['y' * 9999] "
           "%}"
           "{% endfor %}",
           "{% set n = namespace(l=[[]]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}"
           "{% endfor %}{{ n.l | tojson }}",
           "{% for i in range(99999) %}0123456789{% endfor %}",
           // Depth.
           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
           "{% macro f(n) %}{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}{% endmacro %}"
           "{{ f(1) }}",
           "{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor "
           "%}",
           "{% set n = namespace(g=['a']) %}{% for i in range(9999) %}"
           "{% set n.g = n.g | map('upper') %}{% endfor %}{{ n.g | list }}",
       }) {
    EXPECT_EQ(RenderError(source, OrderedJson::object(), limits).code(), StatusCode::kOutOfMemory)
        << source;
  }
}

TEST(ChatTemplateTest, DeepSourcesAreRefused) {
  const auto repeat = [](std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeat("(", 9999) + "1" + repeat(")", 9999) + " }}",
        "{{ " + repeat("[", 9999) + repeat("]", 9999) + " }}",
        "{{ " + repeat("not ", 9999) + "1 }}", "{{ " + repeat("-", 9999) + "1 }}",
        "{{ 1" + repeat(" + 1", 9999) + " }}", "{{ a" + repeat(".b", 9999) + " }}",
        "{{ 'a'" + repeat(" | upper", 9999) + " }}", "{{ 1" + repeat(" if 1 else 1", 9999) + " }}",
        repeat("{% if 1 %}", 9999) + repeat("{% endif %}", 9999),
        "{{ a" + repeat("[a", 9999) + repeat("]", 9999) + " }}"}) {
    EXPECT_FALSE(ChatTemplate::Parse(source).ok()) << source.substr(0, 40);
  }
  // Long is not deep.
  EXPECT_EQ(RenderOk("{{ 'a'" + repeat(" ~ 'a'", 3000) + " }}").size(), 3001u);
  EXPECT_EQ(RenderOk("{% if 0 %}" + repeat("{% elif 0 %}", 3000) + "{% else %}x{% endif %}"), "x");
}

TEST(ChatTemplateTest, RecursionUpToTheLimitWorks) {
  const std::string source =
      "{% macro f(n) %}{% if n > 0 %}{% for i in [n] %}{{ f(i - 1) }}{% endfor %}{% endif %}."
      "{% endmacro %}{{ f(99) }}";
  EXPECT_EQ(RenderOk(source).size(), 100u);
}

TEST(ChatTemplateTest, ValuesThatReferToThemselves) {
  EXPECT_EQ(RenderOk("{% set n = namespace() %}{% set n.me = n %}{{ n.me.me.me is defined }}"),
            "True");
  EXPECT_FALSE(Render("{% set n = namespace() %}{% set n.me = [n] %}{{ n }}").ok());
  EXPECT_EQ(RenderOk("{% set n = namespace() %}{% for i in [1, 2] %}{% set n.l = loop %}"
                     "{{ loop.changed([loop]) }}{% endfor %}{{ n.l.index }}{{ n.l.last }}"),
            "TrueFalse2True");
  EXPECT_EQ(RenderOk("{% set n = namespace() %}{% macro f() %}{% macro g() %}in{% endmacro %}"
                     "{% set n.g = g %}{% endmacro %}{{ f() }}{{ n.g() }}"),
            "in");
}

TEST(ChatTemplateTest, OneTemplateManyThreads) {
  const Result<ChatTemplate> parsed =
      ChatTemplate::Parse("{% for m in messages %}{{ m | upper }}{{ 'x' * 3 }}{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&parsed] {
      for (int i = 0; i < 200; ++i) {
        const Result<std::string> text = parsed->Render({{"messages", {"a", "b"}}});
        EXPECT_TRUE(text.ok() && *text == "AxxxBxxx");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tq
