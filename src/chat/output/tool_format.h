// ToolFormat: what the marks of a ToolSyntax are, and which of a few shapes its calls have. One
// line of a table a syntax; the readers (call_reader.h) know shapes only. Private to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "chat/output/output_syntax.h"

namespace tq {

struct ToolFormat {
  enum class Shape : uint8_t {
    kNone,
    kJson,    // JSON objects with name and arguments, or lists of them
    kNamed,   // a name, and arguments as a JSON object or one by one in tags
    kPython,  // a list of Python calls
    kGemma,   // call:NAME{key:value}
  };
  ToolSyntax syntax = ToolSyntax::kNone;
  Shape shape = Shape::kNone;
  std::array<std::string_view, 2> open = {};  // what begins a region of calls
  std::string_view close = {};                // what ends it; empty: its last call does
  std::string_view close_too = {};            // another one
  char bare = 0;  // an answer that begins with this may be calls without a mark

  // kNamed, kGemma. What is empty is not written.
  std::string_view call_open = {};
  std::string_view name_close = {};
  std::string_view call_close = {};
  std::string_view skipped = {};  // between calls
  std::string_view id_open = {};  // behind the name, in front of name_close
  // Arguments in tags.
  std::string_view param_open = {};
  std::string_view key_close = {};
  std::string_view attributes_close = {};  // a key (or name) ends with a quote, its tag with this
  std::string_view value_open = {};
  std::string_view value_close = {};
  bool untyped_is_string = true;  // false: a value without type that reads as JSON is JSON
  bool null_is_word = true;       // "null" is null for every type
  // kPython, kGemma: what quotes strings.
  std::string_view quote = {};
  bool open_is_call = false;  // `open` is also the call_open of the only call
};

const ToolFormat& FormatOf(ToolSyntax syntax);

}  // namespace tq
