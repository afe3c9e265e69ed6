#include "chat/output/tool_format.h"

namespace tq {
namespace {

using Shape = ToolFormat::Shape;

constexpr ToolFormat kFormats[] = {
    {},
    {.syntax = ToolSyntax::kHermes,
     .shape = Shape::kJson,
     .open = {"<tool_call>"},
     .close = "</tool_call>"},
    {.syntax = ToolSyntax::kQwenXml,
     .shape = Shape::kNamed,
     .open = {"<tool_call>"},
     .close = "</tool_call>",
     .call_open = "<function=",
     .name_close = ">",
     .call_close = "</function>",
     .param_open = "<parameter=",
     .key_close = ">",
     .value_close = "</parameter>"},
    {.syntax = ToolSyntax::kSeed,
     .shape = Shape::kNamed,
     .open = {"<seed:tool_call>"},
     .close = "</seed:tool_call>",
     .call_open = "<function=",
     .name_close = ">",
     .call_close = "</function>",
     .param_open = "<parameter=",
     .key_close = ">",
     .value_close = "</parameter>"},
    {.syntax = ToolSyntax::kGlm,
     .shape = Shape::kNamed,
     .open = {"<tool_call>"},
     .close = "</tool_call>",
     .param_open = "<arg_key>",
     .key_close = "</arg_key>",
     .value_open = "<arg_value>",
     .value_close = "</arg_value>",
     .untyped_is_string = false,
     .null_is_word = false},
    {.syntax = ToolSyntax::kLongcat,
     .shape = Shape::kNamed,
     .open = {"<longcat_tool_call>"},
     .close = "</longcat_tool_call>",
     .param_open = "<longcat_arg_key>",
     .key_close = "</longcat_arg_key>",
     .value_open = "<longcat_arg_value>",
     .value_close = "</longcat_arg_value>",
     .untyped_is_string = false,
     .null_is_word = false},
    {.syntax = ToolSyntax::kMiniMax,
     .shape = Shape::kNamed,
     .open = {"<minimax:tool_call>"},
     .close = "</minimax:tool_call>",
     .call_open = "<invoke name=\"",
     .name_close = "\"",
     .call_close = "</invoke>",
     .param_open = "<parameter name=\"",
     .key_close = "\"",
     .attributes_close = ">",
     .value_close = "</parameter>"},
    {.syntax = ToolSyntax::kMuse,
     .shape = Shape::kNamed,
     .open = {"<atem:function_calls>"},
     .close = "</atem:function_calls>",
     .call_open = "<atem:invoke name=\"",
     .name_close = "\"",
     .call_close = "</atem:invoke>",
     .param_open = "<atem:parameter name=\"",
     .key_close = "\"",
     .attributes_close = ">",
     .value_close = "</atem:parameter>",
     .untyped_is_string = false,
     .null_is_word = false},
    {.syntax = ToolSyntax::kMiniCpm,
     .shape = Shape::kNamed,
     .open = {"<function name=\""},
     .name_close = "\"",
     .call_close = "</function>",
     .param_open = "<param name=\"",
     .key_close = "\"",
     .attributes_close = ">",
     .value_close = "</param>",
     .open_is_call = true},
    {.syntax = ToolSyntax::kDeepSeekXml,
     .shape = Shape::kNamed,
     .open = {"<\xEF\xBD\x9C"
              "DSML\xEF\xBD\x9C"
              "function_calls>",
              "<\xEF\xBD\x9C"
              "DSML\xEF\xBD\x9C"
              "tool_calls>"},
     .close = "</\xEF\xBD\x9C"
              "DSML\xEF\xBD\x9C"
              "function_calls>",
     .close_too = "</\xEF\xBD\x9C"
                  "DSML\xEF\xBD\x9C"
                  "tool_calls>",
     .call_open = "<\xEF\xBD\x9C"
                  "DSML\xEF\xBD\x9Cinvoke name=\"",
     .name_close = "\"",
     .call_close = "</\xEF\xBD\x9C"
                   "DSML\xEF\xBD\x9Cinvoke>",
     .param_open = "<\xEF\xBD\x9C"
                   "DSML\xEF\xBD\x9Cparameter name=\"",
     .key_close = "\"",
     .attributes_close = ">",
     .value_close = "</\xEF\xBD\x9C"
                    "DSML\xEF\xBD\x9Cparameter>",
     .null_is_word = false},
    {.syntax = ToolSyntax::kDeepSeek,
     .shape = Shape::kNamed,
     .open = {"<\xEF\xBD\x9Ctool\xE2\x96\x81"
              "calls\xE2\x96\x81"
              "begin\xEF\xBD\x9C>"},
     .close = "<\xEF\xBD\x9Ctool\xE2\x96\x81"
              "calls\xE2\x96\x81"
              "end\xEF\xBD\x9C>",
     .call_open = "<\xEF\xBD\x9Ctool\xE2\x96\x81"
                  "call\xE2\x96\x81"
                  "begin\xEF\xBD\x9C>",
     .name_close = "<\xEF\xBD\x9Ctool\xE2\x96\x81sep\xEF\xBD\x9C>",
     .call_close = "<\xEF\xBD\x9Ctool\xE2\x96\x81"
                   "call\xE2\x96\x81"
                   "end\xEF\xBD\x9C>",
     .skipped = "```"},
    {.syntax = ToolSyntax::kKimi,
     .shape = Shape::kNamed,
     .open = {"<|tool_calls_section_begin|>"},
     .close = "<|tool_calls_section_end|>",
     .call_open = "<|tool_call_begin|>",
     .name_close = "<|tool_call_argument_begin|>",
     .call_close = "<|tool_call_end|>"},
    {.syntax = ToolSyntax::kKimiXml,
     .shape = Shape::kNamed,
     .open = {"<|open|>tools<|sep|>"},
     .close = "<|close|>tools<|sep|>",
     .call_open = "<|open|>call tool=\"",
     .name_close = "\"",
     .call_close = "<|close|>call<|sep|>",
     .param_open = "<|open|>argument key=\"",
     .key_close = "\"",
     .attributes_close = "<|sep|>",
     .value_close = "<|close|>argument<|sep|>",
     .null_is_word = false},
    {.syntax = ToolSyntax::kMistral,
     .shape = Shape::kNamed,
     .open = {"[TOOL_CALLS]"},
     .name_close = "[ARGS]",
     .id_open = "[CALL_ID]"},
    {.syntax = ToolSyntax::kLlama3, .shape = Shape::kJson, .open = {"<|python_tag|>"}, .bare = '{'},
    {.syntax = ToolSyntax::kNemotron,
     .shape = Shape::kJson,
     .open = {"<TOOLCALL>"},
     .close = "</TOOLCALL>"},
    {.syntax = ToolSyntax::kGranite, .shape = Shape::kJson, .open = {"<|tool_call|>"}},
    {.syntax = ToolSyntax::kPhi,
     .shape = Shape::kJson,
     .open = {"<|tool_call|>"},
     .close = "<|/tool_call|>"},
    {.syntax = ToolSyntax::kCommand,
     .shape = Shape::kJson,
     .open = {"<|START_ACTION|>"},
     .close = "<|END_ACTION|>"},
    {.syntax = ToolSyntax::kPythonic,
     .shape = Shape::kPython,
     .open = {"<|tool_call_start|>"},
     .close = "<|tool_call_end|>"},
    {.syntax = ToolSyntax::kLlama4,
     .shape = Shape::kPython,
     .open = {"<|python_start|>"},
     .bare = '['},
    {.syntax = ToolSyntax::kGemma4,
     .shape = Shape::kGemma,
     .open = {"<|tool_call>"},
     .close = "<tool_call|>",
     .call_open = "call:",
     .quote = "<|\"|>"},
    {.syntax = ToolSyntax::kFunctionGemma,
     .shape = Shape::kGemma,
     .open = {"<start_function_call>"},
     .close = "<end_function_call>",
     .call_open = "call:",
     .quote = "<escape>"},
    // Its calls are messages; only their arguments are read as those of others.
    {.syntax = ToolSyntax::kHarmony, .shape = Shape::kNamed},
};

}  // namespace

const ToolFormat& FormatOf(ToolSyntax syntax) {
  for (const ToolFormat& format : kFormats) {
    if (format.syntax == syntax) return format;
  }
  return kFormats[0];
}

}  // namespace tq
