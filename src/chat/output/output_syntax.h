// OutputSyntax: how a model writes tool calls and thoughts, found in its chat template. What the
// parser (output_parser.h) reads by it is in docs/tool-calls.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tq {

enum class ToolSyntax : uint8_t {
  kNone,           // calls are not recognised
  kHermes,         // <tool_call>{"name": ..., "arguments": {...}}</tool_call>
  kQwenXml,        // <tool_call><function=NAME><parameter=KEY>...
  kSeed,           // <seed:tool_call>, else as kQwenXml
  kGlm,            // <tool_call>NAME<arg_key>KEY</arg_key><arg_value>...
  kLongcat,        // <longcat_tool_call>, else as kGlm
  kMiniMax,        // <minimax:tool_call><invoke name="NAME"><parameter name="KEY">...
  kMuse,           // <atem:function_calls><atem:invoke name="NAME">...
  kMiniCpm,        // <function name="NAME"><param name="KEY">...
  kDeepSeekXml,    // DeepSeek V3.2: DSML tags with attributes
  kDeepSeek,       // DeepSeek V3, R1, V3.1: tool calls begin, call begin, NAME, sep, JSON
  kKimi,           // <|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0...
  kKimiXml,        // <|open|>tools<|sep|><|open|>call tool="NAME" ...
  kMistral,        // [TOOL_CALLS]NAME[ARGS]{...} and [TOOL_CALLS][{...}]
  kLlama3,         // {"name": ..., "parameters": {...}}, <|python_tag|>
  kNemotron,       // <TOOLCALL>[{...}]</TOOLCALL>
  kGranite,        // <|tool_call|>[{...}]
  kPhi,            // <|tool_call|>[{...}]<|/tool_call|>
  kCommand,        // <|START_ACTION|>[{"tool_name": ...}]<|END_ACTION|>
  kPythonic,       // <|tool_call_start|>[name(key="value")]<|tool_call_end|>
  kLlama4,         // [name(key="value")], <|python_start|>
  kGemma4,         // <|tool_call>call:NAME{key:...}<tool_call|>
  kFunctionGemma,  // <start_function_call>call:NAME{key:<escape>...<escape>}<end_function_call>
  kHarmony,        // <|channel|>commentary to=functions.NAME ...<|message|>{...}<|call|>
};

enum class ReasoningSyntax : uint8_t {
  kNone,
  kThink,    // <think>...</think>
  kLongcat,  // <longcat_think>...</longcat_think>
  kSeed,     // <seed:think>...</seed:think>
  kMistral,  // [THINK]...[/THINK]
  kCommand,  // <|START_THINKING|>...<|END_THINKING|>
  kGemma4,   // <|channel>thought...<channel|>
  kHarmony,  // <|channel|>analysis<|message|>...<|end|>
};

struct OutputSyntax {
  ToolSyntax tools = ToolSyntax::kNone;
  ReasoningSyntax reasoning = ReasoningSyntax::kNone;
};

// "hermes", "qwen_xml", ...: for logs, `inspect` and a setting.
std::string_view ToolSyntaxName(ToolSyntax syntax);
std::string_view ReasoningSyntaxName(ReasoningSyntax syntax);
// The inverse; false for an unknown name. "none" is kNone. Takes the names of
// mlx-lm's parsers ("json_tools", "qwen3_coder", "glm47", ...), too.
bool ParseToolSyntax(std::string_view name, ToolSyntax* syntax);

// chat_template: its source text. tool_parser_type: of tokenizer_config.json, "" when it has none;
// it wins when it is known.
OutputSyntax DetectOutputSyntax(std::string_view chat_template,
                                std::string_view tool_parser_type = "");

// Whether a rendered prompt ends inside the model's thoughts: OutputParserOptions.
bool PromptOpensReasoning(ReasoningSyntax syntax, std::string_view prompt);

// The marks that the parser reads. Those that are special tokens of the tokenizer must arrive in
// the text that the parser is fed: the detokenizer has to keep them. All others are plain text
// anyway.
std::vector<std::string_view> SyntaxMarks(const OutputSyntax& syntax);

// What opens and closes thoughts; both empty for kNone.
struct ReasoningMarks {
  std::string_view open;
  std::string_view close;
};
ReasoningMarks MarksOf(ReasoningSyntax syntax);

}  // namespace tq
