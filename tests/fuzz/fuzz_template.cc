// Chat templates: any text must parse or fail, render or fail, within its limits.
// Input: the template, then optionally a zero byte and a JSON object of variables.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "chat/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t split = input.find('\0');
  const tq::Result<tq::ChatTemplate> parsed = tq::ChatTemplate::Parse(input.substr(0, split));
  if (!parsed.ok()) return 0;
  std::string_view variables =
      R"({"messages": [{"role": "user", "content": "a \u00e9 b"}, {"role": "assistant", "content":
          null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"x": [1, 2.5]}}}]},
          {"role": "tool", "content": "r"}], "tools": [{"type": "function", "function": {"name":
          "f", "parameters": {"properties": {"x": {"type": "array"}}}}}],
          "add_generation_prompt": true, "bos_token": "<s>"})";
  if (split != std::string_view::npos) variables = input.substr(split + 1);
  const tq::Result<tq::OrderedJson> json = tq::ParseOrderedJson(variables, "variables");
  if (!json.ok()) return 0;
  tq::TemplateLimits limits;
  limits.max_output_bytes = 1 << 16;
  limits.max_steps = 20'000;
  limits.max_depth = 50;
  static_cast<void>(parsed->Render(*json, limits).ok());
  return 0;
}
