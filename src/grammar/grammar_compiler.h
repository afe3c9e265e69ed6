// GrammarCompiler: turns a schema, a regular expression or a grammar into a Constraint for one
// tokenizer. XGrammar does the work (docs/decisions/007-structured-output.md). What cannot be
// enforced is an error that names it, never an answer without the constraint.
// Thread: any; compiling is serialized inside. A constraint belongs to one request.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/json_schema.h"
#include "sampling/constraint.h"
#include "tokenizer/tokenizer.h"

namespace tq {

// What the text of an answer must match as a whole.
struct GrammarSpec {
  enum class Kind : uint8_t {
    kJsonObject,     // any JSON object; text unused
    kJsonSchema,     // text: the schema
    kRegex,          // text: a regular expression for the whole answer
    kEbnf,           // text: GBNF, from the rule `root` on
    kStructuralTag,  // text: XGrammar's JSON description of text with constrained parts
  };
  Kind kind = Kind::kJsonObject;
  std::string text;
  SchemaMode mode = SchemaMode::kRefuse;  // of kJsonSchema, and of schemas in kStructuralTag
};

class GrammarCompiler {
 public:
  virtual ~GrammarCompiler() = default;

  // False: the program was built without XGrammar, and Create says so.
  static bool Available();
  // vocab_size: of the logits. The tokenizer must outlive the compiler and its constraints.
  // marks: texts that structural tags have in their fixed parts. One that is a special token comes
  // as that token there, and nowhere else; the other special tokens never come.
  // Errors: kUnsupported.
  static Result<std::unique_ptr<GrammarCompiler>> Create(
      const Tokenizer& tokenizer, int64_t vocab_size, std::span<const std::string_view> marks = {});

  // end_ids: may follow the complete text, and nothing else may. Without any, the constraint
  // terminates when the text is complete. `relaxed`, if not null, gets what kRelax took out.
  // Cost: milliseconds to seconds for a new grammar and a large vocabulary; then kept.
  // Errors: kInvalidArgument naming the place in the grammar.
  virtual Result<std::unique_ptr<Constraint>> Compile(const GrammarSpec& spec,
                                                      std::span<const int32_t> end_ids,
                                                      std::vector<std::string>* relaxed) = 0;
};

}  // namespace tq
