#include "chat/output/output_syntax.h"

#include <algorithm>
#include <array>

#include "chat/output/tool_format.h"

namespace tq {
namespace {

// What a chat template holds that shows a syntax: all of some words.
struct ToolRow {
  ToolSyntax syntax;
  std::string_view name;
  std::string_view parser;  // of mlx-lm; empty: it has none, or the same name
  std::array<std::string_view, 2> words;
};

// The first row that fits counts. A syntax may have several; its first one names it.
constexpr ToolRow kTools[] = {
    {ToolSyntax::kMiniMax, "minimax", "minimax_m2", {"<minimax:tool_call>"}},
    {ToolSyntax::kMuse, "muse", "muse_spark", {"<atem:function_calls>"}},
    {ToolSyntax::kGemma4, "gemma4", "", {"<|tool_call>", "<tool_call|>"}},
    {ToolSyntax::kFunctionGemma, "function_gemma", "", {"<start_function_call>"}},
    {ToolSyntax::kLongcat, "longcat", "", {"<longcat_tool_call>"}},
    {ToolSyntax::kSeed, "seed", "", {"<seed:tool_call>"}},
    {ToolSyntax::kGlm, "glm", "glm47", {"<arg_key>"}},
    {ToolSyntax::kGlm, "glm", "laguna", {"<arg_key>"}},
    {ToolSyntax::kPythonic, "pythonic", "", {"<|tool_list_start|>"}},
    {ToolSyntax::kPythonic, "pythonic", "lfm2", {"<|tool_call_start|>"}},
    {ToolSyntax::kQwenXml, "qwen_xml", "qwen3_coder", {"<tool_call>", "<function="}},
    {ToolSyntax::kMiniCpm, "minicpm", "minicpm5", {"<function name=\"", "<param name=\""}},
    {ToolSyntax::kKimi, "kimi", "kimi_k2", {"<|tool_calls_section_begin|>"}},
    {ToolSyntax::kKimiXml, "kimi_xml", "kimi_k3", {"<|open|>tools"}},
    {ToolSyntax::kKimiXml, "kimi_xml", "", {"<|open|>", "<|close|>"}},
    {ToolSyntax::kDeepSeekXml,
     "deepseek_xml",
     "deepseek_dsml",
     {"\xEF\xBD\x9C"
      "DSML"}},
    {ToolSyntax::kDeepSeek,
     "deepseek",
     "",
     {"tool\xE2\x96\x81"
      "calls\xE2\x96\x81"
      "begin"}},
    {ToolSyntax::kMistral, "mistral", "", {"[TOOL_CALLS]"}},
    {ToolSyntax::kHarmony, "harmony", "", {"<|channel|>", "to=functions"}},
    {ToolSyntax::kCommand, "command", "cohere", {"<|START_ACTION|>"}},
    {ToolSyntax::kNemotron, "nemotron", "", {"<TOOLCALL>"}},
    {ToolSyntax::kPhi, "phi", "", {"<|tool_call|>", "<|/tool_call|>"}},
    {ToolSyntax::kGranite, "granite", "", {"<|tool_call|>"}},
    {ToolSyntax::kHermes, "hermes", "json_tools", {"<tool_call>", "tool_call.name"}},
    {ToolSyntax::kHermes, "hermes", "", {"<tool_call>", "arguments"}},
    {ToolSyntax::kLlama3, "llama3", "", {"<|python_tag|>"}},
    {ToolSyntax::kLlama3, "llama3", "", {"<|start_header_id|>", "\"parameters\""}},
    {ToolSyntax::kLlama4, "llama4", "", {"<|python_start|>"}},
    {ToolSyntax::kLlama4, "llama4", "", {"<|header_start|>", "tool_calls"}},
};

struct ReasoningRow {
  ReasoningSyntax syntax;
  std::string_view name;
  ReasoningMarks marks;
  std::array<std::string_view, 2> words;
};

constexpr ReasoningRow kReasoning[] = {
    {ReasoningSyntax::kHarmony,
     "harmony",
     {"<|channel|>analysis<|message|>", "<|end|>"},
     {"<|channel|>", "<|message|>"}},
    {ReasoningSyntax::kHarmony,
     "harmony",
     {"<|channel|>analysis<|message|>", "<|end|>"},
     {"to=self", "<|message|>"}},
    {ReasoningSyntax::kGemma4, "gemma4", {"<|channel>thought", "<channel|>"}, {"<|channel>"}},
    {ReasoningSyntax::kLongcat,
     "longcat",
     {"<longcat_think>", "</longcat_think>"},
     {"longcat_think>"}},
    {ReasoningSyntax::kSeed, "seed", {"<seed:think>", "</seed:think>"}, {"seed:think>"}},
    {ReasoningSyntax::kMistral, "mistral", {"[THINK]", "[/THINK]"}, {"[THINK]"}},
    {ReasoningSyntax::kCommand,
     "command",
     {"<|START_THINKING|>", "<|END_THINKING|>"},
     {"<|START_THINKING|>"}},
    {ReasoningSyntax::kThink, "think", {"<think>", "</think>"}, {"<think>"}},
    {ReasoningSyntax::kThink, "think", {"<think>", "</think>"}, {"</think>"}},
};

template <typename Row>
bool Fits(const Row& row, std::string_view text) {
  return std::all_of(row.words.begin(), row.words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

std::string_view ToolSyntaxName(ToolSyntax syntax) {
  for (const ToolRow& row : kTools) {
    if (row.syntax == syntax) return row.name;
  }
  return "none";
}

std::string_view ReasoningSyntaxName(ReasoningSyntax syntax) {
  for (const ReasoningRow& row : kReasoning) {
    if (row.syntax == syntax) return row.name;
  }
  return "none";
}

bool ParseToolSyntax(std::string_view name, ToolSyntax* syntax) {
  *syntax = ToolSyntax::kNone;
  if (name == "none") return true;
  for (const ToolRow& row : kTools) {
    if (row.name != name && (row.parser.empty() || row.parser != name)) continue;
    *syntax = row.syntax;
    return true;
  }
  return false;
}

OutputSyntax DetectOutputSyntax(std::string_view chat_template, std::string_view tool_parser_type) {
  OutputSyntax syntax;
  if (tool_parser_type.empty() || !ParseToolSyntax(tool_parser_type, &syntax.tools)) {
    for (const ToolRow& row : kTools) {
      if (!Fits(row, chat_template)) continue;
      syntax.tools = row.syntax;
      break;
    }
  }
  for (const ReasoningRow& row : kReasoning) {
    if (!Fits(row, chat_template)) continue;
    syntax.reasoning = row.syntax;
    break;
  }
  return syntax;
}

ReasoningMarks MarksOf(ReasoningSyntax syntax) {
  for (const ReasoningRow& row : kReasoning) {
    if (row.syntax == syntax) return row.marks;
  }
  return {};
}

bool PromptOpensReasoning(ReasoningSyntax syntax, std::string_view prompt) {
  if (syntax == ReasoningSyntax::kNone) return false;
  while (!prompt.empty() && IsSpace(prompt.back())) prompt.remove_suffix(1);
  if (syntax == ReasoningSyntax::kHarmony && prompt.ends_with("to=self<|message|>")) return true;
  return prompt.ends_with(MarksOf(syntax).open);
}

std::vector<std::string_view> SyntaxMarks(const OutputSyntax& syntax) {
  const ToolFormat& format = FormatOf(syntax.tools);
  const ReasoningMarks reasoning = MarksOf(syntax.reasoning);
  std::vector<std::string_view> marks = {
      format.open[0],    format.open[1],          format.close,      format.close_too,
      format.call_open,  format.name_close,       format.id_open,    format.call_close,
      format.param_open, format.key_close,        format.value_open, format.value_close,
      format.quote,      format.attributes_close, reasoning.open,    reasoning.close};
  if (syntax.tools == ToolSyntax::kHarmony || syntax.reasoning == ReasoningSyntax::kHarmony) {
    marks.insert(marks.end(), {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
                               "<|end|>", "<|call|>", "<|eom|>"});
  }
  if (syntax.tools == ToolSyntax::kKimiXml) {
    marks.insert(marks.end(), {"<|open|>", "<|close|>", "<|sep|>"});
  }
  if (syntax.tools == ToolSyntax::kDeepSeekXml)
    marks.push_back(
        "\xEF\xBD\x9C"
        "DSML\xEF\xBD\x9C");
  if (syntax.tools == ToolSyntax::kGemma4 || syntax.reasoning == ReasoningSyntax::kGemma4) {
    marks.insert(marks.end(), {"<|channel>", "<|\"|>"});
  }
  if (syntax.tools == ToolSyntax::kCommand || syntax.reasoning == ReasoningSyntax::kCommand) {
    marks.insert(marks.end(), {"<|START_RESPONSE|>", "<|END_RESPONSE|>"});
  }
  std::erase_if(marks, [](std::string_view mark) { return mark.empty(); });
  std::sort(marks.begin(), marks.end());
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  return marks;
}

}  // namespace tq
